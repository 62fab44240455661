"""What cores share: the memory bandwidth of a ccNUMA domain, and what its running out does to times."""
