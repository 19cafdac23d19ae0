"""How the report shows each kind of study."""
