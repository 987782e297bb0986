package gateway_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// fakeDoor is a door.Door that decides by a function and remembers
// everything that it was told.
type fakeDoor struct {
	door.Door // what only the egress router asks

	ca    *x509.Certificate
	caPEM []byte
	key   *ecdsa.PrivateKey

	mu       sync.Mutex
	decide   func(pkgref.Ref, door.File) policy.Decision
	epoch    int
	indexes  map[string][]door.File // by digest
	asks     []door.IndexAsk
	wants    bool // edges of indexes
	listed   []listing
	times    bool // files without a time are asked to be timed
	served   []door.ServeAsk
	denied   []door.FileAsk
	onServed func()                                     // when a serving was recorded; mu is held
	wait     func(context.Context, door.AwaitAsk) error // before Await answers
	failures []door.Failure
	asked    []door.Question // what upstreams were asked
	unasked  error           // what Asking answers
	named    []string        // names that the policy admits
	edges    map[string][]door.Requirement
	aborted  []int64
	shows    []door.Showing
	unshown  error // what Show answers
	sent     []uint64
	log      []string          // what happened, in order
	owner    string            // of every name
	unsaid   string            // what no upstream may hear; "": there is nothing
	owned    []string          // names whose owner was asked for
	apart    map[string]string // by sandbox
	broken   bool              // every call fails: nothing can be decided or recorded
	breaks   error             // with this; nil: errBroken
	// next is what Reach gives out, once; as long as there is any, nothing is the last
	// word. walked are the asks about what is read for that, judged by mayRead.
	next    []door.ToRead
	walked  []door.WalkAsk
	mayRead func(door.WalkAsk) policy.Decision
	// previewed and awaited are those questions, however they were answered.
	previewed []door.PreviewAsk
	awaited   []door.AwaitAsk
	// proposals that were made.
	proposals []door.ProposalAsk
	// builder is every run's, and build answers what is to be built with bytes, or with a
	// refusal's reason. builds are those asks.
	builder string
	makes   []policy.ArtifactKind
	build   func(door.BuildAsk) (made []byte, refused string)
	builds  []door.BuildAsk
	made    map[string][]byte // by sha256
}

// Build implements door.Door.
func (d *fakeDoor) Build(_ context.Context, ask door.BuildAsk) (door.BuildAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.builds = append(d.builds, ask)
	d.note("build %s", ask.Source)
	made, refused := d.build(ask)
	if refused != "" {
		return door.BuildAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Deny, Rule: "packages.sdist.build", Reason: refused}, RequestID: "r-build"}}, nil
	}
	sum := sha256.Sum256(made)
	built := door.Built{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(made))}
	if d.made == nil {
		d.made = map[string][]byte{}
	}
	d.made[built.SHA256] = made
	return door.BuildAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Allow}}, Built: &built}, nil
}

// ReadBuilt implements door.Door; it gives little at a time.
func (d *fakeDoor) ReadBuilt(_ context.Context, ask door.ReadBuiltAsk) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := d.made[ask.SHA256][ask.Offset:]
	return rest[:min(len(rest), 100)], nil
}

// Reach gives out what there is to read, and then nothing.
func (d *fakeDoor) Reach(context.Context, door.ReachAsk) (door.ReachAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.next
	d.next = nil
	return door.ReachAnswer{Next: next}, nil
}

// Reached is never so, and StopReaching never of any consequence.
func (d *fakeDoor) Reached(context.Context, door.ReachAsk) (bool, error) { return false, nil }

func (d *fakeDoor) StopReaching(context.Context, door.ReachAsk) error { return nil }

// Propose tells each item's decision by its first file, and what it was asked.
func (d *fakeDoor) Propose(_ context.Context, ask door.ProposalAsk) ([]door.Proposed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proposals = append(d.proposals, ask)
	var out []door.Proposed
	for _, item := range ask.Items {
		v := d.decide(item.Package, item.Files[0])
		out = append(out, door.Proposed{Package: item.Package, Effect: v.Effect, Rule: v.Rule, Reason: v.Reason})
	}
	return out, nil
}

func allowAll(pkgref.Ref, door.File) policy.Decision {
	return policy.Decision{Effect: policy.Allow}
}

func newDoor(tb testing.TB) *fakeDoor {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test installation"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	return &fakeDoor{
		ca: c, key: key, caPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		decide: allowAll, indexes: map[string][]door.File{}, edges: map[string][]door.Requirement{},
	}
}

var errBroken = errors.New("the log is full")

// rule changes the policy.
func (d *fakeDoor) rule(f func(pkgref.Ref, door.File) policy.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decide = f
	d.epoch++
}

func (d *fakeDoor) note(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

func (d *fakeDoor) Index(_ context.Context, ask door.IndexAsk) (door.IndexAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return door.IndexAnswer{}, cmp.Or(d.breaks, errBroken)
	}
	d.asks = append(d.asks, ask)
	files, ok := d.indexes[ask.IndexDigest]
	if ask.Files == nil && !ok {
		return door.IndexAnswer{NeedFiles: true, NeedTimes: d.times}, nil
	}
	if ask.Files != nil {
		files = ask.Files
		d.indexes[ask.IndexDigest] = files
	}
	a := door.IndexAnswer{Epoch: fmt.Sprint("e", d.epoch), OfFile: make([]int, len(files)), RequestID: "r-index", WantEdges: d.wants}
	at := map[string]int{}
	for i, f := range files {
		ref := ask.Package
		ref.Version = f.Version
		dec := d.decide(ref, f)
		key := string(dec.Effect) + dec.Reason
		if _, ok := at[key]; !ok {
			at[key] = len(a.Verdicts)
			a.Verdicts = append(a.Verdicts, dec)
		}
		a.OfFile[i] = at[key]
	}
	return a, nil
}

func (d *fakeDoor) Owner(_ context.Context, ask door.OwnerAsk) (door.OwnerAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owned = append(d.owned, ask.Package.Name)
	if d.unsaid != "" && strings.Contains(ask.Package.Name+" "+ask.Version+" "+ask.Asked, d.unsaid) {
		return door.OwnerAnswer{}, fault.New(fault.ErrForbidden, "it may not leave; request r-7; see: cofferdam why")
	}
	return door.OwnerAnswer{Upstream: d.owner, Apart: d.apart[ask.Sandbox], Builder: d.builder, Makes: d.makes, Admitted: slices.Contains(d.named, ask.Package.Name)}, nil
}

// admits has the policy name some packages.
func (d *fakeDoor) admits(names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.named = names
}

// askedFor tells whether the owner of a name was asked for.
func (d *fakeDoor) askedFor(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.owned, name)
}

func (d *fakeDoor) EdgesOfIndex(_ context.Context, _ string, project pkgref.Ref, digest string, reqs []door.IndexRequirement) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return errBroken
	}
	d.listed = append(d.listed, listing{project, digest, reqs})
	d.note("listed %s", project.Name)
	return nil
}

// listing is what the door was told of an index's requirements.
type listing struct {
	Project pkgref.Ref
	Digest  string
	Reqs    []door.IndexRequirement
}

// decided answers what needs no record to be let in; of what waits, what says who asked.
func (d *fakeDoor) decided(ask door.FileAsk, what string) (door.Answer, error) {
	dec := d.decide(ask.Package, ask.File)
	switch {
	case dec.Effect == policy.Hold:
		d.note("held %s: %s", ask.File.Name, what)
	case !dec.Allowed():
		d.denied = append(d.denied, ask)
		d.note("denied %s", ask.File.Name)
		return door.Answer{Decision: dec, RequestID: fmt.Sprint("r-", len(d.denied))}, nil
	}
	return door.Answer{Decision: dec, Seq: uint64(len(d.served))}, nil
}

// works fails while nothing can be decided or recorded. It needs mu.
func (d *fakeDoor) works() error {
	if d.broken {
		return cmp.Or(d.breaks, errBroken)
	}
	return nil
}

func (d *fakeDoor) judged(ask door.FileAsk, mayWalk bool, what string) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.works(); err != nil {
		return door.Answer{}, err
	}
	if mayWalk && len(d.next) > 0 {
		return door.Answer{Decision: policy.Decision{Effect: policy.Deny}, Unreached: true}, nil
	}
	return d.decided(ask, what)
}

func (d *fakeDoor) Judge(_ context.Context, ask door.JudgeAsk) (door.Answer, error) {
	return d.judged(ask.FileAsk, ask.MayWalk, "judge")
}

func (d *fakeDoor) Outline(_ context.Context, ask door.OutlineAsk) (door.Answer, error) {
	return d.judged(ask.FileAsk, ask.MayWalk, "outline")
}

func (d *fakeDoor) Preview(_ context.Context, ask door.PreviewAsk) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.works(); err != nil {
		return door.Answer{}, err
	}
	d.previewed = append(d.previewed, ask)
	return d.decided(ask.FileAsk, "preview")
}

func (d *fakeDoor) Walk(_ context.Context, ask door.WalkAsk) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.works(); err != nil {
		return door.Answer{}, err
	}
	d.walked = append(d.walked, ask)
	return door.Answer{Decision: d.mayRead(ask)}, nil
}

func (d *fakeDoor) Await(ctx context.Context, ask door.AwaitAsk) (door.Answer, error) {
	d.mu.Lock()
	wait := d.wait
	d.mu.Unlock()
	if wait != nil {
		if err := wait(ctx, ask); err != nil {
			return door.Answer{}, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.works(); err != nil {
		return door.Answer{}, err
	}
	d.awaited = append(d.awaited, ask)
	answer, err := d.decided(ask.FileAsk, "await")
	if answer.Decision.Effect == policy.Hold {
		answer.RequestID, answer.Approval = "r-held", "ap-7k2m4q"
	}
	return answer, err
}

func (d *fakeDoor) Serve(_ context.Context, ask door.ServeAsk) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.works(); err != nil {
		return door.Answer{}, err
	}
	answer, err := d.decided(ask.FileAsk, "serve")
	if !answer.Decision.Allowed() {
		return answer, err
	}
	d.served = append(d.served, ask)
	d.note("served %s", ask.File.Name)
	if d.onServed != nil {
		d.onServed()
	}
	answer.Seq = uint64(len(d.served))
	return answer, nil
}

func (d *fakeDoor) Name(_ context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("name %s", ask.Name)
	return door.NameAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Deny, Reason: ask.Name + " is not a registry"}, RequestID: "r-name"}}, nil
}

func (d *fakeDoor) HostRefused(_ context.Context, h door.HostRefusal) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("%s: %s %s:%d %s", h.Sandbox, h.Rule, h.Name, h.Port, h.Reason)
	return door.Answer{}, nil
}

func (d *fakeDoor) Failed(_ context.Context, f door.Failure) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return door.Answer{}, errBroken
	}
	d.failures = append(d.failures, f)
	d.note("failed %s %s", f.Package.Name, f.File)
	return door.Answer{RequestID: fmt.Sprint("f-", len(d.failures))}, nil
}

func (d *fakeDoor) Asking(_ context.Context, q door.Question) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.works(); err != nil {
		return err
	}
	if d.unasked == nil {
		d.asked = append(d.asked, q)
	}
	return d.unasked
}

func (d *fakeDoor) Show(_ context.Context, s door.Showing) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return errBroken
	}
	d.shows = append(d.shows, s)
	return d.unshown
}

func (d *fakeDoor) Edges(_ context.Context, _ string, parent pkgref.Ref, reqs []door.Requirement) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return errBroken
	}
	d.edges[parent.String()] = reqs
	d.note("edges %s", parent.Name)
	return nil
}

func (d *fakeDoor) Sent(_ context.Context, _ string, seq uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, seq)
	d.note("sent")
	return nil
}

func (d *fakeDoor) Aborted(_ context.Context, _ string, _ uint64, sent int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aborted = append(d.aborted, sent)
	return nil
}

func (d *fakeDoor) Refusals(context.Context, string, string, int) ([]door.Refusal, error) {
	return nil, nil
}

func (d *fakeDoor) Trust(_ context.Context, hosts []string) (door.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return door.Certificate{}, err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, d.ca, &key.PublicKey, d.key)
	if err != nil {
		return door.Certificate{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return door.Certificate{}, err
	}
	return door.Certificate{
		ChainPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// LastAsk is the last question about an index, with the files that the door
// knows by its digest.
func (d *fakeDoor) LastAsk() door.IndexAsk {
	d.mu.Lock()
	defer d.mu.Unlock()
	ask := d.asks[len(d.asks)-1]
	ask.Files = d.indexes[ask.IndexDigest]
	return ask
}

// Failures are what was recorded as failed.
func (d *fakeDoor) Failures() []door.Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]door.Failure(nil), d.failures...)
}

// Served are the recorded artifacts.
func (d *fakeDoor) Served() []door.ServeAsk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]door.ServeAsk(nil), d.served...)
}
