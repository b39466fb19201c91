"""An oracle of contracts that shares no code with the judge: brute force over the completions of small traces."""
