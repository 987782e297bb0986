package door

import "net/netip"

// NameAsk asks whether a name may be resolved or connected to.
type NameAsk struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
	Port    int    `json:"port,omitempty"` // 0 for a DNS question
	// Look tells that no record is to follow.
	Look bool `json:"look,omitempty"`
}

// NameAnswer is the answer about a name.
type NameAnswer struct {
	Answer Answer `json:"answer"`
	// Ports are those on which an allowed name may be connected to, or asked about if it
	// waits for a person, ascending.
	Ports []int `json:"ports,omitempty"`
	// TCP tells that anything may be spoken on a connection to the port that was asked for.
	TCP bool `json:"tcp,omitempty"`
	// Carried are the bytes that the sandbox's connections have carried, as far as they
	// have ended: also before this gateway began, and this daemon.
	Carried int64 `json:"carried,omitempty"`
	// Judged, of an ask with a port, tells that each request on such a connection is
	// judged (Request), so that its TLS is ended with what Leaf gives.
	Judged bool `json:"judged,omitempty"`
	// Git, of one that is judged, tells that repositories are. Its client is to speak
	// HTTP/1.1 then: git with libcurl before 8 waits for ever for itself where a large push
	// over HTTP/2 is not read as fast as it is sent.
	Git bool `json:"git,omitempty"`
}

// The protocols of connections to hosts.
const (
	ProtocolTLS   = "tls"   // what is inside is the client's and the host's
	ProtocolHTTP  = "http"  // without TLS
	ProtocolHTTPS = "https" // over TLS that the gateway ends
	// ProtocolTCP is whatever the two ends speak, unread.
	ProtocolTCP = "tcp"
)

// ResolveAsk asks whether a name may be looked up, of which a name server then hears.
type ResolveAsk struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
	Port    int    `json:"port"`
}

// ConnectAsk asks for a connection to a host. Its client has said by the protocol that it
// means this name, unless that is ProtocolTCP, and each of the addresses is one that the
// host may have.
type ConnectAsk struct {
	Sandbox   string       `json:"sandbox"`
	Name      string       `json:"name"`
	Port      int          `json:"port"`
	Protocol  string       `json:"protocol"`
	Addresses []netip.Addr `json:"addresses"`
	// Pinned tells that the operator's configuration has the address, and nobody was asked
	// for it.
	Pinned bool `json:"pinned,omitempty"`
	// Judged tells that whoever carries it asks about each request.
	Judged bool `json:"judged,omitempty"`
}

// HostAsk asks for a host that waits for a person. Its client has said by the protocol
// that it means this name; nobody has looked the name up.
type HostAsk struct {
	Sandbox  string `json:"sandbox"`
	Name     string `json:"name"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

// Disconnection is how a connection ended that Connect allowed.
type Disconnection struct {
	Sandbox      string `json:"sandbox"`
	Seq          uint64 `json:"seq"` // of the answer
	Address      string `json:"address,omitempty"`
	BytesOut     int64  `json:"bytes_out"`
	BytesIn      int64  `json:"bytes_in"`
	Milliseconds int64  `json:"milliseconds"`
	Requests     int64  `json:"requests,omitempty"` // that were passed on, where they are read
	Dials        int64  `json:"dials,omitempty"`    // connections to the host, if there were several in turn
	Problem      string `json:"problem,omitempty"`  // why it ended, if not by its own ends
	// Unreached tells that none of the addresses could be connected to.
	Unreached bool `json:"unreached,omitempty"`
}

// HostRefusal is a connection that was refused for what its client said, for the host's
// addresses, or for want of room: by a rule that is none of the policy's.
type HostRefusal struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
	Port    int    `json:"port"`
	Rule    string `json:"rule"` // one of those below
	Reason  string `json:"reason"`
	// Request is the method and the path of the one that was refused, if it was one.
	Request string `json:"request,omitempty"`
}

// The rules of refused connections.
const (
	RuleHostTLS        = "network.tls"      // a malformed ClientHello, one without a name, or with another
	RuleHostProtocol   = "network.protocol" // neither TLS nor HTTP
	RuleHostHTTP       = "network.http"     // a request to another authority, or one that is read in two ways
	RuleHostRequest    = "network.request"  // a request that the policy does not have
	RuleHostBody       = "network.body"     // one that carries more than it may, or that can't be looked into
	RuleHostPattern    = "network.pattern"  // one in which something was found
	RuleHostAddress    = "network.address"  // an address that the name may not have
	RuleHostUnresolved = "network.unresolved"
	RuleHostUnreached  = "network.unreached"
	RuleHostQuota      = "quota.connections"
	RuleHostBytes      = "quota.bytes"
	RuleHostMemory     = "quota.gateway_memory" // the run has as much in the gateway's memory as it may
)
