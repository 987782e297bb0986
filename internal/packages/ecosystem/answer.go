package ecosystem

// Form names one representation of a protocol's pages.
type Form string

// Verdict is what the run's policy says about a file, as far as a page shows it.
type Verdict struct {
	Allowed bool
	// Outlined tells, of what is not allowed, that resolvers may read what it requires.
	Outlined bool
	// Reason is one ASCII sentence from fixed text, names and versions.
	Reason string
}

// Cause is why a request is refused. It decides the status.
type Cause string

// The causes.
const (
	ByPolicy    Cause = "policy"      // a decision: deny or hold
	Malformed   Cause = "malformed"   // the request is not canonical
	Unverified  Cause = "unverified"  // the upstream's answer could not be verified
	Unreachable Cause = "unreachable" // the upstream can't be reached, or is broken
	Missing     Cause = "missing"     // the upstream has no such thing
	Declined    Cause = "declined"    // the upstream does not give it
	NoSuchRoute Cause = "no route"    // the gateway has no such route
	TooMuch     Cause = "too much"    // a limit of this run
)

// Refusal is a request that is refused, to be worded.
type Refusal struct {
	Route     RouteKind // "" if the request has none
	Cause     Cause
	What      string // "python requests 2.31.0", or "" if the request names nothing
	Reason    string // one ASCII sentence from fixed text, names and versions
	Rule      string
	Suggest   string // YAML lines that would allow it, or ""
	RequestID string // "" if nothing was recorded
	// Approval is the request that waits for a person, and Approve the command
	// with which they approve it; "" if nothing waits.
	Approval string
	Approve  string
}

// Answer is a whole HTTP answer.
type Answer struct {
	Status      int
	Phrase      string // HTTP/1.1 reason phrase: ASCII, one line
	ContentType string
	Header      map[string]string // further fields, or nil
	Body        []byte
}
