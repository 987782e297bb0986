package door

import (
	"context"
	"net/netip"
)

// Hosts judges and records names, connections to hosts that are no registries, and the requests on them. The gateway
// of the registries also records here why it refused a connection.
type Hosts interface {
	// Name judges a DNS question or a stream to a name that is no registry's. A host that waits for
	// a person is answered as a hold, and nobody is asked yet: AwaitHost asks. Refusals are
	// recorded, once per distinct name, up to the run's quota.
	Name(ctx context.Context, ask NameAsk) (NameAnswer, error)

	// AwaitHost files a host that waits for a person, and waits as the policy's on_hold
	// says; whoever asks may give up. A hold is the answer if nobody has answered by then.
	AwaitHost(ctx context.Context, ask HostAsk) (Answer, error)

	// Resolving judges whether a host's name may be looked up, and records that it is,
	// durably when it returns: once for each name, with the number of its repeats. Names
	// that lead nowhere are counted where the policy does not have them letter by letter.
	// Unless it allows that, nobody may be asked for the name.
	Resolving(ctx context.Context, ask ResolveAsk) (Answer, error)

	// Connect judges a connection to a host whose addresses are known; it appends the
	// record that an allowed one begins, durable when it returns. Disconnected ends it.
	Connect(ctx context.Context, ask ConnectAsk) (Answer, error)

	// Disconnected records how a connection ended.
	Disconnected(ctx context.Context, d Disconnection) error

	// HostRefused records a connection that the gateway refused, once per rule, name and
	// port.
	HostRefused(ctx context.Context, h HostRefusal) (Answer, error)

	// Standing tells which of a sandbox's connections, by the records that they began,
	// may not go on. An error means: none may.
	Standing(ctx context.Context, sandbox string, connections []uint64) (ended []uint64, err error)

	// Leaf gives a certificate for a name of which the connections' requests are judged,
	// under the authority that this sandbox trusts for that. One whose authority is not
	// for the name, because the judging came later, is told so.
	Leaf(ctx context.Context, ask LeafAsk) (Certificate, error)

	// Request judges a request before any of it is sent. A refusal is recorded, once per
	// method and path.
	Request(ctx context.Context, ask RequestAsk) (RequestAnswer, error)

	// AwaitPush answers for a push, of which Request has said that a person is asked. With
	// Wait it is filed and waited for as the policy's on_hold says; a hold is the answer if
	// nobody has answered by then. An allowed request is on record when it returns.
	AwaitPush(ctx context.Context, ask PushAsk) (Answer, error)

	// Requested records what became of requests, each when it has ended, up to a number of
	// them for each run.
	Requested(ctx context.Context, done RequestsDone) error
}

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
