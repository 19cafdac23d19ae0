"""Tables as people have them: any source becomes nodes, edges and labels."""
