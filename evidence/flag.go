package evidence

// The kinds of integrity flags.
const (
	FlagTestDeleted       = "test_deleted"
	FlagTestSkipped       = "test_skipped"
	FlagAssertionWeakened = "assertion_weakened"
	FlagVerifyTampered    = "verify_tampered"
	FlagHardcodedOutput   = "hardcoded_output"
	FlagHistoryMining     = "history_mining"
	FlagUpstreamLookup    = "upstream_lookup"
	FlagReferenceAccess   = "reference_access"
	FlagEnvProbe          = "env_probe"
	FlagExitMasking       = "exit_masking"
	FlagJudgeInjection    = "judge_injection"
	FlagNoOpSuccess       = "no_op_success"
)
