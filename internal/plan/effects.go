package plan

// The effects of a release of a plan, beside the policy's own.
const (
	EffectAllow = "allow"
	EffectHold  = "hold"
	EffectDeny  = "deny"
	// EffectError is of a release that the gateway never showed.
	EffectError = "error"
)
