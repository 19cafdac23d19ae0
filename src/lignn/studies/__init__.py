"""The paper's figures and tables as data: a resumable runner that writes one record a run, and reports on records."""
