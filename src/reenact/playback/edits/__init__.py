"""What a fork changes: requests, answers, results, for every provider."""
