package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// inventoryPatience bounds how long a guest may take to list its packages.
const inventoryPatience = 20 * time.Second

// settle puts a command's end and what it installed on record, then lets go
// those who wait for that.
func (m *Manager) settle(ctx context.Context, s *Sandbox, c *command, exit channel.Exit) {
	defer close(c.settled)
	if err := m.recordInstalled(ctx, s); err != nil {
		m.cfg.Log.Warn("what is installed could not be listed", "sandbox", s.info.ID, "err", err)
	}
	if err := m.cfg.Door.CommandFinished(ctx, s.info.ID, c.id, exit); err != nil {
		m.cfg.Log.Error("a command's end is not on record", "sandbox", s.info.ID, "command", c.id, "err", err)
	}
	s.mu.Lock()
	s.lastUsed = time.Now()
	s.mu.Unlock()
}

// settleFailed is for a command that did not start.
func (m *Manager) settleFailed(ctx context.Context, s *Sandbox, c *command, cause error) {
	defer close(c.settled)
	exit := channel.Exit{Code: 126, Error: cause.Error()}
	if err := m.cfg.Door.CommandFinished(context.WithoutCancel(ctx), s.info.ID, c.id, exit); err != nil {
		m.cfg.Log.Error("a command's end is not on record", "sandbox", s.info.ID, "command", c.id, "err", err)
	}
}

// recordInstalled asks the guest what is on its disk, takes the template's own
// away, and has the rest recorded.
func (m *Manager) recordInstalled(ctx context.Context, s *Sandbox) error {
	now, err := m.inventory(ctx, s.info.ID)
	if err != nil {
		return err
	}
	baseline, _ := m.baseline(s.info.Digest)
	return m.cfg.Door.Installed(ctx, s.info.ID, now, baseline)
}

// baseline returns what a template brings, as a first sandbox of it listed it
// before it ran anything; a restarted daemon finds it on disk.
func (m *Manager) baseline(digest string) (channel.Inventory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inv, known := m.baselines[digest]
	if known {
		return inv, true
	}
	data, err := os.ReadFile(m.baselinePath(digest))
	if err != nil || json.Unmarshal(data, &inv) != nil {
		return channel.Inventory{}, false
	}
	m.baselines[digest] = inv
	return inv, true
}

func (m *Manager) baselinePath(digest string) string {
	return filepath.Join(m.cfg.BaselineDir, strings.TrimPrefix(digest, "sha256:")+".json")
}

func (m *Manager) inventory(ctx context.Context, id string) (channel.Inventory, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryPatience)
	defer cancel()
	reply, err := m.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallInventory})
	if err != nil {
		return channel.Inventory{}, err
	}
	if !reply.OK {
		return channel.Inventory{}, fault.New(fault.ErrUnavailable, "the guest can't list its packages: %s", reply.Error)
	}
	var inv channel.Inventory
	return inv, json.Unmarshal(reply.Body, &inv)
}

// learnBaseline lists what a template brings, once per template; it runs before
// any command, so nothing that an agent did is in it.
func (m *Manager) learnBaseline(ctx context.Context, s *Sandbox) error {
	if _, known := m.baseline(s.info.Digest); known {
		return nil
	}
	inv, err := m.inventory(ctx, s.info.ID)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.baselines[s.info.Digest] = inv
	data, err := json.Marshal(inv)
	if err != nil {
		return err
	}
	return publish(m.baselinePath(s.info.Digest), data)
}

// Settle waits until every command of a run that has ended is on record.
// Commands that still run are not waited for.
func (m *Manager) Settle(ctx context.Context, run string) error {
	for _, s := range m.List() {
		if s.info.Run != run {
			continue
		}
		if err := m.settleEnded(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) settleEnded(ctx context.Context, s *Sandbox) error {
	k, err := m.cfg.Keeper.Get(ctx, s.info.ID)
	if err != nil {
		return nil //nolint:nilerr // the sandbox is gone, and with it nothing is left to wait for
	}
	for _, kc := range k.Commands {
		s.mu.Lock()
		c := s.commands[kc.ID]
		s.mu.Unlock()
		if c == nil || kc.Exit == nil {
			continue
		}
		select {
		case <-c.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// settleAll gives the records of ended commands a moment before their sandbox
// is destroyed.
func (m *Manager) settleAll(ctx context.Context, s *Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, settleGrace)
	defer cancel()
	if err := m.settleEnded(ctx, s); err != nil {
		m.cfg.Log.Warn("a sandbox is destroyed before its last command was on record", "sandbox", s.info.ID)
	}
}
