"""The paper's figures and tables: studies as data, a runner that records every run, and reports on the records."""
