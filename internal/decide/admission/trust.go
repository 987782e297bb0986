package admission

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// tellTime bounds how long a sandbox is told of an authority.
const tellTime = 5 * time.Second

// trusts are the hosts whose authority a sandbox was told to trust, since a narrower
// policy has rules for some that its own has none for. A daemon that takes over tells it
// again when that is needed.
type trusts struct {
	mu    sync.Mutex // guards hosts; held while the sandbox is told
	hosts []string
}

// Leaf implements Door. The authority is that of the policy with which the sandbox began,
// or one that the sandbox was told of later.
func (q *Requests) Leaf(ctx context.Context, ask door.LeafAsk) (door.Certificate, error) {
	t, err := q.tenants.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.Certificate{}, err
	}
	if q.leaf == nil {
		return door.Certificate{}, fault.New(fault.ErrUnavailable, "this daemon has no certificate authority")
	}
	hosts := t.run.Policy.Requests().Hosts()
	if !haveHost(hosts, ask.Name) {
		if hosts = t.policy().Requests().Hosts(); !haveHost(hosts, ask.Name) {
			return door.Certificate{}, fault.New(fault.ErrForbidden, "no policy of the sandbox has rules for requests to %s", redact.Cut(ask.Name, 253))
		}
		if err := q.spread(ctx, t, hosts); err != nil {
			return door.Certificate{}, fault.Wrap(fault.ErrForbidden, err,
				"each request to %s is judged since a narrower policy came; this sandbox began before that and can't be told to trust our certificate for it, so start another one", redact.Cut(ask.Name, 253))
		}
	}
	return q.leaf(ctx, hosts, ask.Name)
}

// TrustAnew has a sandbox that lives trust the authority of the hosts that policies have
// rules for by now. Where that fails it is told when it first connects to one.
func (q *Requests) TrustAnew(ctx context.Context, sandbox string) error {
	t, err := q.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	hosts := t.policy().Requests().Hosts()
	if slices.Equal(hosts, t.run.Policy.Requests().Hosts()) {
		return nil
	}
	return q.spread(ctx, t, hosts)
}

// Trusted are the hosts that a sandbox was told of since it began.
func (q *Requests) Trusted(sandbox string) []string {
	t, err := q.tenants.getTenant(sandbox)
	if err != nil {
		return nil
	}
	t.trusts.mu.Lock()
	defer t.trusts.mu.Unlock()
	return t.trusts.hosts
}

// spread has a sandbox trust the authority of hosts, unless it does.
func (q *Requests) spread(ctx context.Context, t *tenant, hosts []string) error {
	t.trusts.mu.Lock()
	defer t.trusts.mu.Unlock()
	if slices.Equal(hosts, t.trusts.hosts) {
		return nil
	}
	if q.tell == nil {
		return fault.New(fault.ErrUnavailable, "nobody can tell a sandbox whom to trust")
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if err := q.tell(ctx, t.run.Sandbox, hosts); err != nil {
		return err
	}
	t.trusts.hosts = hosts
	return nil
}

// haveHost tells whether one of ended hosts, which may begin with "*.", has a name.
func haveHost(hosts []string, name string) bool {
	return slices.ContainsFunc(hosts, func(host string) bool {
		if below, ok := strings.CutPrefix(host, "*"); ok {
			return strings.HasSuffix(name, below)
		}
		return host == name
	})
}
