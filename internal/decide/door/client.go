package door

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/hashicorp/yamux"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxIdle is how many streams are kept for the next calls.
const maxIdle = 64

// Client is the gateway's end of the door. It is safe for concurrent use. When
// the connection is lost every call fails; there is no second connection.
type Client struct {
	session *yamux.Session
	broken  error    // the session could not begin: every call fails with it
	shares  *shares  // of the sandboxes, in the calls under way
	answers *answers // of indexes, by epoch

	mu   sync.Mutex // guards idle
	idle []*callLine
}

var _ Door = (*Client)(nil)

// ErrGone is in the error of a Client whose daemon went away with a question in
// its hands: nothing was decided.
var ErrGone = errors.New("the daemon went away")

// NewClient begins a session on conn, which it owns from then on.
func NewClient(conn net.Conn) *Client {
	c := &Client{shares: newShares(), answers: newAnswers(512, 2_000_000)}
	c.session, c.broken = yamux.Client(conn, sessionConfig())
	if c.broken != nil {
		c.broken = errors.Join(c.broken, conn.Close())
	}
	return c
}

// Close ends the session and fails the calls under way.
func (c *Client) Close() error {
	if c.session == nil {
		return nil
	}
	return c.session.Close()
}

// Done is closed when the connection is lost: nothing can be decided any more.
func (c *Client) Done() <-chan struct{} {
	if c.broken != nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return c.session.CloseChan()
}

// Index implements Door.
func (c *Client) Index(ctx context.Context, ask IndexAsk) (IndexAnswer, error) {
	known := c.answers.knownEpochs(ask)
	r, err := askFor[indexReply](ctx, c, ask.Sandbox, callIndex, indexCall{Ask: ask, Known: known.epochs()})
	if err != nil {
		return IndexAnswer{}, err
	}
	a := r.Answer
	if r.Same {
		old, ok := known[a.Epoch]
		if !ok {
			return IndexAnswer{}, fault.New(fault.ErrUnavailable, "the daemon refers to an answer that it never gave")
		}
		a.Verdicts, a.OfFile = old.Verdicts, old.OfFile
		return a, nil
	}
	for _, v := range a.OfFile {
		if v < 0 || v >= len(a.Verdicts) {
			return IndexAnswer{}, fault.New(fault.ErrUnavailable, "the daemon's answer about an index refers to no verdict")
		}
	}
	c.answers.keepAnswer(ask, a)
	return a, nil
}

// Owner implements Door.
func (c *Client) Owner(ctx context.Context, ask OwnerAsk) (OwnerAnswer, error) {
	return askFor[OwnerAnswer](ctx, c, ask.Sandbox, callOwner, ask)
}

// Judge implements Door.
func (c *Client) Judge(ctx context.Context, ask JudgeAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callJudge, ask)
}

// Outline implements Door.
func (c *Client) Outline(ctx context.Context, ask OutlineAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callOutline, ask)
}

// Preview implements Door.
func (c *Client) Preview(ctx context.Context, ask PreviewAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callPreview, ask)
}

// Walk implements Door.
func (c *Client) Walk(ctx context.Context, ask WalkAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callWalk, ask)
}

// Await implements Door.
func (c *Client) Await(ctx context.Context, ask AwaitAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callAwait, ask)
}

// Serve implements Door.
func (c *Client) Serve(ctx context.Context, ask ServeAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callServe, ask)
}

// Build implements Door. It may wait as long as a call for a person does.
func (c *Client) Build(ctx context.Context, ask BuildAsk) (BuildAnswer, error) {
	return askFor[BuildAnswer](ctx, c, ask.Sandbox, callBuild, ask)
}

// ReadBuilt implements Door.
func (c *Client) ReadBuilt(ctx context.Context, ask ReadBuiltAsk) ([]byte, error) {
	return askFor[[]byte](ctx, c, ask.Sandbox, callReadBuilt, ask)
}

// Name implements Door.
func (c *Client) Name(ctx context.Context, ask NameAsk) (NameAnswer, error) {
	return askFor[NameAnswer](ctx, c, ask.Sandbox, callName, ask)
}

// Failed implements Door.
func (c *Client) Failed(ctx context.Context, f Failure) (Answer, error) {
	return askFor[Answer](ctx, c, f.Sandbox, callFailed, f)
}

// Edges implements Door.
func (c *Client) Edges(ctx context.Context, sandbox string, parent pkgref.Ref, reqs []Requirement) error {
	return c.callWithoutReply(ctx, sandbox, callEdges, edgesCall{sandbox, parent, reqs})
}

// EdgesOfIndex implements Door.
func (c *Client) EdgesOfIndex(ctx context.Context, sandbox string, project pkgref.Ref, indexDigest string, reqs []IndexRequirement) error {
	return c.callWithoutReply(ctx, sandbox, callEdgesOfIndex, edgesOfIndexCall{sandbox, project, indexDigest, reqs})
}

// Reach implements Door.
func (c *Client) Reach(ctx context.Context, ask ReachAsk) (ReachAnswer, error) {
	return askFor[ReachAnswer](ctx, c, ask.Sandbox, callReach, ask)
}

// Reached implements Door.
func (c *Client) Reached(ctx context.Context, ask ReachAsk) (bool, error) {
	return askFor[bool](ctx, c, ask.Sandbox, callReached, ask)
}

// StopReaching implements Door.
func (c *Client) StopReaching(ctx context.Context, ask ReachAsk) error {
	return c.callWithoutReply(ctx, ask.Sandbox, callStopReaching, ask)
}

// Propose implements Door.
func (c *Client) Propose(ctx context.Context, ask ProposalAsk) ([]Proposed, error) {
	return askFor[[]Proposed](ctx, c, ask.Sandbox, callPropose, ask)
}

// Aborted implements Door.
func (c *Client) Aborted(ctx context.Context, sandbox string, recordSeq uint64, sent int64) error {
	return c.callWithoutReply(ctx, sandbox, callAborted, abortedCall{sandbox, recordSeq, sent})
}

// Asking implements Door.
func (c *Client) Asking(ctx context.Context, q Question) error {
	return c.callWithoutReply(ctx, q.Sandbox, callAsking, q)
}

// Show implements Door.
func (c *Client) Show(ctx context.Context, s Showing) error {
	return c.callWithoutReply(ctx, s.Sandbox, callShow, s)
}

// Sent implements Door.
func (c *Client) Sent(ctx context.Context, sandbox string, recordSeq uint64) error {
	return c.callWithoutReply(ctx, sandbox, callSent, sentCall{sandbox, recordSeq})
}

// Refusals implements Door.
func (c *Client) Refusals(ctx context.Context, sandbox, request string, most int) ([]Refusal, error) {
	return askFor[[]Refusal](ctx, c, sandbox, callRefusals, refusalsCall{sandbox, request, most})
}

// Trust implements Door.
func (c *Client) Trust(ctx context.Context, hosts []string) (Certificate, error) {
	return askFor[Certificate](ctx, c, "", callTrust, trustCall{hosts})
}

// Resolving implements Door.
func (c *Client) Resolving(ctx context.Context, ask ResolveAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callResolving, ask)
}

// Connect implements Door.
func (c *Client) Connect(ctx context.Context, ask ConnectAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callConnect, ask)
}

// AwaitHost implements Door.
func (c *Client) AwaitHost(ctx context.Context, ask HostAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callAwaitHost, ask)
}

// Disconnected implements Door.
func (c *Client) Disconnected(ctx context.Context, d Disconnection) error {
	return c.callWithoutReply(ctx, d.Sandbox, callDisconnected, d)
}

// HostRefused implements Door.
func (c *Client) HostRefused(ctx context.Context, h HostRefusal) (Answer, error) {
	return askFor[Answer](ctx, c, h.Sandbox, callHostRefused, h)
}

// Credentials implements Door.
func (c *Client) Credentials(ctx context.Context, ask CredentialsAsk) (CredentialsAnswer, error) {
	return askFor[CredentialsAnswer](ctx, c, ask.Sandbox, callCredentials, ask)
}

// Secrets implements Door.
func (c *Client) Secrets(ctx context.Context, ask SecretsAsk) (SecretsAnswer, error) {
	return askFor[SecretsAnswer](ctx, c, ask.Sandbox, callSecrets, ask)
}

// Lent implements Door.
func (c *Client) Lent(ctx context.Context, ask LentAsk) (LentAnswer, error) {
	return askFor[LentAnswer](ctx, c, ask.Sandbox, callLent, ask)
}

// Declined implements Door.
func (c *Client) Declined(ctx context.Context, ask DeclinedAsk) error {
	return c.callWithoutReply(ctx, ask.Sandbox, callDeclined, ask)
}

// Leaked implements Door.
func (c *Client) Leaked(ctx context.Context, ask LeakAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callLeaked, ask)
}

// Scans implements Door.
func (c *Client) Scans(ctx context.Context, ask ScansAsk) (ScansAnswer, error) {
	return askFor[ScansAnswer](ctx, c, ask.Sandbox, callScans, ask)
}

// FoundInRequest implements Door.
func (c *Client) FoundInRequest(ctx context.Context, ask FoundAsk) (FoundAnswer, error) {
	return askFor[FoundAnswer](ctx, c, ask.Sandbox, callFoundInRequest, ask)
}

// Standing implements Door.
func (c *Client) Standing(ctx context.Context, sandbox string, connections []uint64) ([]uint64, error) {
	return askFor[[]uint64](ctx, c, sandbox, callStanding, standingCall{sandbox, connections})
}

// Leaf implements Door.
func (c *Client) Leaf(ctx context.Context, ask LeafAsk) (Certificate, error) {
	return askFor[Certificate](ctx, c, ask.Sandbox, callLeaf, ask)
}

// Request implements Door.
func (c *Client) Request(ctx context.Context, ask RequestAsk) (RequestAnswer, error) {
	return askFor[RequestAnswer](ctx, c, ask.Sandbox, callRequest, ask)
}

// AwaitPush implements Door.
func (c *Client) AwaitPush(ctx context.Context, ask PushAsk) (Answer, error) {
	return askFor[Answer](ctx, c, ask.Sandbox, callAwaitPush, ask)
}

// Requested implements Door.
func (c *Client) Requested(ctx context.Context, done RequestsDone) error {
	return c.callWithoutReply(ctx, done.Sandbox, callRequested, done)
}
