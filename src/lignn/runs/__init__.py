"""Many runs: in processes of this machine or a cluster, with a record of each, from which they go on."""
