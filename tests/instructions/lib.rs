//! Nothing but a home for `hot_loops`, a program of pipelines, and `gate`, which counts their instructions.
