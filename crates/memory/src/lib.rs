//! Shared memory between the processes of one host: segments, rings, queues, heap, waiting.
