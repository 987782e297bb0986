package door

import "github.com/cofferdam-dev/cofferdam/internal/decide/policy"

// LeafAsk asks for the certificate with which a connection's TLS is ended.
type LeafAsk struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
}

// RequestAsk asks whether a request may be sent to a host.
type RequestAsk struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
	Port    int    `json:"port"`
	Method  string `json:"method"`
	Path    string `json:"path"` // as it is sent, escaped, without the query
	// Query is its beginning, up to MaxQuery bytes: only git's is judged, and that is short.
	Query string `json:"query,omitempty"`
}

// MaxQuery is how much of a query is asked about.
const MaxQuery = 64

// RequestAnswer is the answer about a request. One that may be sent is held to the terms.
type RequestAnswer struct {
	Answer Answer              `json:"answer"`
	Terms  policy.RequestTerms `json:"terms"`
}

// RequestsDone are requests on one connection that were passed on and have ended.
type RequestsDone struct {
	Sandbox    string        `json:"sandbox"`
	Connection uint64        `json:"connection"` // the record that it began
	Requests   []RequestDone `json:"requests"`
}

// RequestDone is one of them.
type RequestDone struct {
	// Number is the request's among those of its client's connection that have ended, from 1
	// on. One that is told twice is recorded once.
	Number       uint64 `json:"number"`
	Method       string `json:"method"`
	Path         string `json:"path"`
	Rule         string `json:"rule"`
	Status       int    `json:"status"`    // 0: there was no answer
	BytesOut     int64  `json:"bytes_out"` // of bodies
	BytesIn      int64  `json:"bytes_in"`
	Milliseconds int64  `json:"milliseconds"`
	Problem      string `json:"problem,omitempty"` // why it ended, if not as its ends meant it to
}
