//! The secret that readers of an endpoint bring: checked for strength when it is set, compared without telling how far
//! a guess was right. Never shown.

/// Fewest characters of a token.
const TOKEN_LEN: usize = 16;

/// A secret that readers send as `Authorization: Bearer TOKEN`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// A token of at least 16 visible ASCII characters.
    ///
    /// Errors: what was expected.
    pub fn new(text: &str) -> Result<Self, String> {
        let fits = text.len() >= TOKEN_LEN && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Token(text.to_owned())).ok_or_else(|| {
            format!("expected at least {TOKEN_LEN} visible ASCII characters without spaces, such as `openssl rand -hex 16` gives")
        })
    }

    /// Whether a request's header holds it; how long the answer takes tells nothing of the token but its length.
    pub(super) fn is_in(&self, header: &str) -> bool {
        let given = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some(given) = given.map(|(_, text)| text.trim().as_bytes()) else { return false };
        let own = self.0.as_bytes();
        given.len() == own.len() && given.iter().zip(own).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    #[test]
    fn tokens_are_long_plain_and_not_shown() {
        for refused in ["", "short", "has a space in it at all", "schlüsselschlüssel", "0123456789abcde\n"] {
            assert!(Token::new(refused).unwrap_err().contains("16 visible"), "{refused:?}");
        }
        assert_eq!(format!("{:?}", Token::new(SECRET)), "Ok(Token(..))");
    }

    #[test]
    fn only_the_whole_token_in_its_scheme_is_taken() {
        let token = Token::new(SECRET).unwrap();
        for taken in ["Bearer 0123456789abcdef", "bearer  0123456789abcdef "] {
            assert!(token.is_in(taken), "{taken}");
        }
        for refused in [
            "",
            "Bearer",
            "Bearer ",
            SECRET,
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
        ] {
            assert!(!token.is_in(refused), "{refused}");
        }
    }
}
