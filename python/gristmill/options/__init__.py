"""What callers say: read strictly, with the nearest name where one is unknown, and packages that they choose."""
