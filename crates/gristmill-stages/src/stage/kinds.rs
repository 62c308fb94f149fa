//! The table of the kinds of stages, in flow order, and the stages that are nothing but a file and a row of it.
//! A row: name, variant, options, `as step` over rows or `as pass` over chunks, what it reads, its outputs and what each gives.

pub mod dedup_window;

/// Hands the rows to another macro. Types without a path are those of `config`.
macro_rules! stage_rows {
    ($then:ident) => {
        $then! {
            file_path_provider: FilePathProvider(FilePathProviderConfig), [] -> [output: File];
            chunk_source_loader: ChunkSourceLoader(ChunkSourceLoaderConfig), [File] -> [output: Source];
            chunk_source_splitter: ChunkSourceSplitter(ChunkSourceSplitterConfig), [Source] -> [output: Source];
            shuffling_chunk_pool: ShufflingChunkPool(ShufflingChunkPoolConfig), [Source, CacheRequest] ->
                [output: Chunk, cachehit_output: Frame];
            simple_chunk_extractor: SimpleChunkExtractor(SimpleChunkExtractorConfig), [Source] -> [output: Chunk];
            chunk_validator: ChunkValidator(ChunkValidatorConfig) as pass, [Chunk] -> [output: Chunk];
            chunk_rescorer: ChunkRescorer(ChunkRescorerConfig) as pass, [Chunk] -> [output: Chunk];
            chunk_unpacker: ChunkUnpacker(ChunkUnpackerConfig), [Chunk] -> [output: Frame, prefetch_output: CacheRequest];
            join_positions: JoinPositions(JoinPositionsConfig), [Frame] -> [output: Frame];
            dedup_window: DedupWindow(crate::stage::kinds::dedup_window::DedupWindowConfig) as step,
                [Frame] -> [output: Frame];
            shuffling_frame_sampler: ShufflingFrameSampler(ShufflingFrameSamplerConfig) as step,
                [Frame] -> [output: Frame];
            tensor_generator: TensorGenerator(TensorGeneratorConfig), [Frame] -> [output: Batch];
        }
    };
}

pub(crate) use stage_rows;
