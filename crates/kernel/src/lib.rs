//! Endpoint, requests, matching and progress.
