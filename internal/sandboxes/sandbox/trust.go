package sandbox

import (
	"bytes"
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Trust has a sandbox that runs trust the authority of hosts whose requests are judged
// since it began, beside those that it trusts already. Programs that have read the
// certificates go on by what they read.
func Trust(ctx context.Context, m *Manager, id string, hosts []string) error {
	s, err := m.Get(id)
	if err != nil {
		return err
	}
	if state, _ := s.State(); state != Running {
		return fault.New(fault.ErrConflict, "the sandbox %s does not run, so it can't be told whom to trust", id)
	}
	caPEM, _, err := trustOf(ctx, m.cfg, s.policy, hosts)
	if err != nil {
		return err
	}
	if _, err := m.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallTrust, Trust: &channel.Trust{CAPEM: caPEM}}); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s could not be told whom to trust", id)
	}
	return nil
}

// trustOf is what a sandbox trusts, and the names that the gateway answers for. Where its
// policy has requests judged, that is the CA of just these hosts, too, and where it was
// told of more since, the CA of those; nobody else trusts them.
func trustOf(ctx context.Context, cfg *Config, p *policy.Policy, since []string) (caPEM []byte, names []string, err error) {
	caPEM, names, err = cfg.Trust(ctx)
	for _, hosts := range [][]string{p.Requests().Hosts(), since} {
		if err != nil || len(hosts) == 0 {
			continue
		}
		if cfg.TrustHosts == nil {
			return nil, nil, fault.New(fault.ErrUnavailable, "the policy has requests judged, and nothing here can end TLS for that")
		}
		var more []byte
		more, err = cfg.TrustHosts(ctx, hosts)
		caPEM = bytes.Join([][]byte{caPEM, more}, []byte("\n"))
	}
	return caPEM, names, err
}
