package policy

// Approval is a person's answer about a release, as a fact: only those that
// hold for the run (by scope and expiry) are given to Judge. It decides what
// would wait for a person, and nothing else: what the policy denies stays
// denied.
type Approval struct {
	ID      string // of the request
	Version string // canonical
	Denied  bool
	By      string // who answered, for the reason
	Reason  string // the person's, shown to the run if it is a denial
	// Digests of the files that the person was shown. An approval admits a file
	// with one of its strong digests, and no other; a denial denies every file
	// of the release.
	Digests []string
}

// HoldMode is what a held install does.
type HoldMode string

// The modes.
const (
	HoldFail   HoldMode = "fail"   // it fails at once, with the request's id
	HoldWait   HoldMode = "wait"   // the client's request waits
	HoldFreeze HoldMode = "freeze" // the whole sandbox is written to disk until the answer comes
)

// ByApproval: a person's answer decided.
const ByApproval ResolvedBy = "approval"
