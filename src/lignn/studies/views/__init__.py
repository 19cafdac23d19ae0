"""The ways in which a study is shown in the report, one a file. They read records, and nothing else of a run."""
