package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Recover adopts the sandboxes that the keeper holds and sweeps away what no
// longer lives. Called once, before the first Create.
func (m *Manager) Recover(ctx context.Context) error {
	held, err := m.cfg.Keeper.List(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, k := range held {
		known[k.ID] = true
		if err := m.adopt(ctx, k); err != nil {
			m.cfg.Log.Warn("a sandbox can't be adopted and is swept away", "sandbox", k.ID, "err", err)
			m.sweep(ctx, k)
		}
	}
	m.sweepMounts(known)
	for _, eng := range m.cfg.Engines {
		ids, err := eng.List(ctx)
		if err != nil {
			m.cfg.Log.Warn("an engine can't list its sandboxes", "engine", eng.Name(), "err", err)
			continue
		}
		for _, id := range ids {
			if known[id] {
				continue
			}
			if err := eng.Sweep(ctx, id); err != nil {
				m.cfg.Log.Error("the remains of a sandbox can't be swept away", "sandbox", id, "err", err)
			}
		}
	}
	return nil
}

// adopt takes a living sandbox back and follows its commands.
func (m *Manager) adopt(ctx context.Context, k keeper.Sandbox) error {
	var info Info
	if err := json.Unmarshal(k.Meta, &info); err != nil || info.ID != k.ID {
		return fmt.Errorf("its meta is not ours: %w", errors.Join(err, fault.ErrInvalid))
	}
	if !k.Alive {
		return errors.New("its processes are gone")
	}
	p, err := m.loadPolicy(info.PolicyDigest)
	if err != nil {
		return err
	}
	lock, err := m.loadLock(info.LockDigest)
	if err != nil {
		return err
	}
	eng, ok := m.cfg.Engines[info.Engine]
	if !ok {
		return fmt.Errorf("there is no engine %q any more", info.Engine)
	}
	inst, err := eng.Open(ctx, info.Handle)
	if err != nil {
		return err
	}
	run := admission.Run{
		Sandbox: info.ID, Run: info.Run, Task: info.Task, User: info.User,
		Policy: p, Lock: lock, Template: info.Template, Started: info.Created, Plan: info.Plan,
	}
	if err := m.cfg.Door.Restore(ctx, run); err != nil {
		return err
	}
	s := newSandbox(info, p, inst)
	s.state = Running
	m.add(s)
	m.followAgain(ctx, s, k.Commands)
	return nil
}

// followAgain follows the commands that the previous daemon started; those
// already on record as finished are left alone.
func (m *Manager) followAgain(ctx context.Context, s *Sandbox, commands []keeper.Command) {
	finished := m.cfg.Door.Finished(ctx, s.info.ID)
	for _, kc := range commands {
		c := &command{id: kc.ID, settled: make(chan struct{})}
		if finished[kc.ID] {
			close(c.settled)
			s.hold(c)
			continue
		}
		s.hold(c)
		m.background.Go(func() { m.follow(s, c, 0) })
	}
	if why := m.cfg.Door.MustEnd(s.info.ID); why != "" {
		m.endFor(s, why)
	}
}

// sweep takes away what the keeper still holds of a sandbox that can't be
// adopted.
func (m *Manager) sweep(ctx context.Context, k keeper.Sandbox) {
	if k.Alive {
		if err := m.cfg.Keeper.Kill(ctx, k.ID); err != nil {
			m.cfg.Log.Error("a sandbox can't be killed", "sandbox", k.ID, "err", err)
		}
	}
	for _, eng := range m.cfg.Engines {
		if err := eng.Sweep(ctx, k.ID); err != nil {
			m.cfg.Log.Error("the remains of a sandbox can't be swept away", "sandbox", k.ID, "err", err)
		}
	}
	if err := m.cfg.Keeper.Forget(ctx, k.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
		m.cfg.Log.Error("the keeper can't forget a sandbox", "sandbox", k.ID, "err", err)
	}
}

// keepPolicy stores the document under its digest, so that a restarted daemon
// and `policy suggest` find it.
func (m *Manager) keepPolicy(req Request) error {
	path := m.policyPath(req.Policy.Digest())
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := publish(path, req.PolicyText); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the policy can't be kept in %s", m.cfg.PolicyDir)
	}
	return nil
}

// publish writes a file whole or not at all.
func publish(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.Write(data)
	return errors.Join(werr, tmp.Sync(), tmp.Close(), os.Rename(tmp.Name(), path))
}

func (m *Manager) policyPath(digest string) string {
	return filepath.Join(m.cfg.PolicyDir, strings.TrimPrefix(digest, "sha256:")+".yaml")
}

// PolicyText returns the document of a digest, or fault.ErrNotFound.
func (m *Manager) PolicyText(digest string) ([]byte, error) {
	data, err := os.ReadFile(m.policyPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the policy %s is not kept any more", digest)
	}
	return data, nil
}

func (m *Manager) loadPolicy(digest string) (*policy.Policy, error) {
	data, err := m.PolicyText(digest)
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse(digest, data)
	if err != nil {
		return nil, err
	}
	if p.Digest() != digest {
		return nil, fault.New(fault.ErrConflict, "the kept policy %s has another digest now", digest)
	}
	return p, nil
}
