package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// Bounds of what a guest may say about its disk.
const (
	inventoryPatience = 60 * time.Second // for all pages of it
	inventoryPackages = 40_000           // with the projects that are written there
	inventoryBytes    = 24 << 20         // of JSON
	baselineForm      = "-3.json"        // ending of a baseline's file; the number is the form's
	mountsPrefix      = "mounts-"
	projectDepth      = 3 // below a read-only mount
)

// account has what a command left on the disk recorded, as far as it was not
// there before, and returns why the sandbox is to be ended; "": it is not. An
// error means that nothing is known of the disk and that this is not on record
// either.
func (m *Manager) account(ctx context.Context, s *Sandbox) (end string, err error) {
	s.stock.Lock() // pages of two inventories must not mix, and of two commands one may do the work of both
	defer s.stock.Unlock()
	template, _ := m.baseline(m.templateBaselines(s)...)
	skip := unchangeable(s.info)
	if !s.root.Load() {
		skip = append(skip, template.Closed...)
	}
	found, err := m.inventory(ctx, s.info.ID, channel.InventoryAsk{Skip: skip})
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		lives := m.lives(ctx, s)
		level := slog.LevelDebug // the record says it; of one that was killed there is nothing to look into
		if lives {
			level = slog.LevelWarn
		}
		m.cfg.Log.Log(ctx, level, "what is installed could not be listed", "sandbox", s.info.ID, "err", err)
		answer, err := m.cfg.Door.StockUnknown(ctx, s.info.ID, err.Error(), lives)
		return answer.End, err
	}
	stock := inventory.Disk{Found: found, Mounts: s.info.WritableMounts, Template: template}
	if len(s.info.WritableMounts) > 0 {
		stock.Contents = func(ctx context.Context, paths []string) (map[string][]string, error) {
			return m.contents(ctx, s.info.ID, paths)
		}
	}
	if len(s.info.WritableMounts)+len(s.info.ReadOnlyMounts) > 0 {
		stock.Before, err = m.readBaseline(m.mountsPath(s.info.ID))
		if err != nil {
			m.cfg.Log.Error("what lay on a sandbox's mounts before is not known any more", "sandbox", s.info.ID, "err", err)
		}
	}
	answer, err := m.cfg.Door.Installed(ctx, s.info.ID, stock)
	return answer.End, err
}

// unchangeable are the directories of a sandbox that nothing in it can have changed,
// root included: the engine shows them read-only. What lies there a run has not
// installed, whatever a time or an owner says. Not among them is what a writable mount
// lies over; one that lies below them is looked into all the same.
func unchangeable(info Info) []string {
	shown := slices.DeleteFunc(slices.Clone(info.TemplateMounts), func(place string) bool {
		return slices.ContainsFunc(info.WritableMounts, func(over string) bool {
			return place == over || strings.HasPrefix(place, over+"/")
		})
	})
	return slices.Concat(info.ReadOnlyMounts, shown)
}

// asRoot notes that something is done in a sandbox with root's rights, if user
// is root: from then on no place is closed.
func (s *Sandbox) asRoot(user string) {
	if user == "root" || user == "0" {
		s.root.Store(true)
	}
}

// lives tells whether a sandbox whose guest did not answer goes on: nobody takes it
// away, and its processes run. They may be about to end: its channel is closed before
// the keeper has waited for them.
func (m *Manager) lives(ctx context.Context, s *Sandbox) bool {
	if state, _ := s.State(); state.Ends() {
		return false
	}
	k, err := m.cfg.Keeper.Get(ctx, s.info.ID)
	if err != nil || !k.Alive {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	_, err = m.cfg.Keeper.Wait(soon, s.info.ID)
	state, _ := s.State()
	return err != nil && !errors.Is(err, fault.ErrNotFound) && !state.Ends()
}

// endPatience is how long a process may take to be over after its channel.
const endPatience = time.Second

// inventory asks a guest for its packages, page by page.
func (m *Manager) inventory(ctx context.Context, id string, ask channel.InventoryAsk) (channel.Inventory, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryPatience)
	defer cancel()
	return fetchInventory(ask, func(ask channel.InventoryAsk) ([]byte, error) {
		reply, err := m.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallInventory, Inventory: &ask})
		if err == nil && !reply.OK {
			err = fault.New(fault.ErrUnavailable, "the guest can't list its packages: %s", reply.Error)
		}
		return reply.Body, err
	})
}

// fetchInventory puts the pages together. A guest that does not go on, or has
// more than an agent gives, is refused whole.
func fetchInventory(ask channel.InventoryAsk, call func(channel.InventoryAsk) ([]byte, error)) (channel.Inventory, error) {
	var all channel.Inventory
	size := 0
	for {
		body, err := call(ask)
		if err != nil {
			return channel.Inventory{}, err
		}
		var page channel.Inventory
		if err := json.Unmarshal(body, &page); err != nil {
			return channel.Inventory{}, fault.Wrap(fault.ErrInvalid, err, "the guest's list of packages can't be read")
		}
		all.Packages = append(all.Packages, page.Packages...)
		all.Truncated = all.Truncated || page.Truncated
		all.Closed = append(all.Closed, page.Closed...)
		if size += len(body); size > inventoryBytes || len(all.Packages) > inventoryPackages {
			return channel.Inventory{}, fault.Invalid("the guest's list of packages has no end")
		}
		if page.Next == 0 {
			return all, nil
		}
		if page.Next != len(all.Packages) || page.Next <= ask.From || ask.Take != 0 && page.Take != ask.Take {
			return channel.Inventory{}, fault.Invalid("the pages of the guest's list of packages don't fit together")
		}
		ask.Take, ask.From = page.Take, page.Next
	}
}

// mountsDigest names where the mounts of a sandbox lie.
func mountsDigest(info Info) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Concat(info.WritableMounts, []string{""}, info.ReadOnlyMounts), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// learnBaseline lists what a template brings, once per template, and what lies on
// the sandbox's mounts; it runs before any command, so nothing that the
// agent did is in it.
func (m *Manager) learnBaseline(ctx context.Context, s *Sandbox) error {
	if err := m.learnTemplate(ctx, s); err != nil {
		return err
	}
	asks := mountAsks(s.info)
	if len(asks) == 0 {
		return nil
	}
	var before channel.Inventory
	for _, ask := range asks {
		found, err := m.inventory(context.WithoutCancel(ctx), s.info.ID, ask)
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "what lies on the mounts can't be listed")
		}
		before.Packages = append(before.Packages, found.Packages...)
		before.Truncated = before.Truncated || found.Truncated
	}
	return writeBaseline(m.mountsPath(s.info.ID), before)
}

// mountAsks ask for what lies on mounts. Of those that are read-only only the
// projects matter, near the top: packages on them can be used, not installed.
func mountAsks(info Info) []channel.InventoryAsk {
	var asks []channel.InventoryAsk
	if len(info.WritableMounts) > 0 {
		asks = append(asks, channel.InventoryAsk{Places: info.WritableMounts, Skip: info.ReadOnlyMounts})
	}
	if len(info.ReadOnlyMounts) > 0 {
		asks = append(asks, channel.InventoryAsk{Places: info.ReadOnlyMounts, Skip: info.WritableMounts, Depth: projectDepth})
	}
	return asks
}

func (m *Manager) learnTemplate(ctx context.Context, s *Sandbox) error {
	names := m.templateBaselines(s)
	if _, known := m.baseline(names...); known {
		return nil
	}
	if s.info.IsCopy() { // what lies there now its source's agent may have put there
		return fault.New(fault.ErrUnavailable, "what the template of the copy's source brings is not known any more, so what is in the copy can't be accounted for")
	}
	inv, err := m.inventory(ctx, s.info.ID, channel.InventoryAsk{Skip: slices.Concat(s.info.ReadOnlyMounts, s.info.WritableMounts)})
	if err != nil {
		return err
	}
	name := names[len(names)-1]
	m.mu.Lock()
	m.baselines[name] = inv
	m.mu.Unlock()
	return writeBaseline(m.baselinePath(name), inv)
}

// templateBaselines are the names of the baselines that tell what a sandbox's
// template brings, the best one first: what mounts lie over is in that of a
// sandbox without mounts only.
func (m *Manager) templateBaselines(s *Sandbox) []string {
	name := strings.TrimPrefix(s.info.Digest, "sha256:")
	if len(s.info.WritableMounts)+len(s.info.ReadOnlyMounts) == 0 {
		return []string{name}
	}
	return []string{name, name + "-" + mountsDigest(s.info)}
}

// baseline returns the first baseline of these names that there is; a restarted
// daemon finds it on disk.
func (m *Manager) baseline(names ...string) (channel.Inventory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		inv, known := m.baselines[name]
		if known {
			return inv, true
		}
		inv, err := m.readBaseline(m.baselinePath(name))
		if err == nil {
			m.baselines[name] = inv
			return inv, true
		}
	}
	return channel.Inventory{}, false
}

func (m *Manager) baselinePath(name string) string {
	return filepath.Join(m.cfg.BaselineDir, name+baselineForm)
}

// mountsPath keeps what lay on a sandbox's mounts, as long as the sandbox lives.
func (m *Manager) mountsPath(id string) string {
	return filepath.Join(m.cfg.BaselineDir, mountsPrefix+id+baselineForm)
}

func (m *Manager) readBaseline(path string) (channel.Inventory, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return channel.Inventory{}, err
	}
	var inv channel.Inventory
	return inv, json.Unmarshal(data, &inv)
}

func writeBaseline(path string, inv channel.Inventory) error {
	data, err := json.Marshal(inv)
	if err != nil {
		return err
	}
	return wholefile.Replace(path, data, 0o600)
}

// forgetMounts takes the list of what lay on a sandbox's mounts away.
func (m *Manager) forgetMounts(id string) {
	m.forgetMade(id)
	if err := os.Remove(m.mountsPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.cfg.Log.Warn("the list of what lay on a sandbox's mounts can't be removed", "sandbox", id, "err", err)
	}
}

// sweepMounts takes away the lists of sandboxes that are gone.
func (m *Manager) sweepMounts(lives func(id string) bool) {
	kept, _ := filepath.Glob(m.mountsPath("*")) // the pattern is well formed
	for _, path := range kept {
		id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), mountsPrefix), baselineForm)
		if !lives(id) {
			m.forgetMounts(id)
		}
	}
	m.sweepMade(lives)
}

// endFor ends a sandbox for what was found on its disk; it returns at once.
func (m *Manager) endFor(s *Sandbox, why string) {
	errand.In(&m.background, func() {
		m.cfg.Log.Warn("a sandbox is ended, as its policy asks", "sandbox", s.info.ID, "why", why)
		if err := m.Destroy(m.ctx, s.info.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
			m.cfg.Log.Error("a sandbox that its policy ends can't be destroyed", "sandbox", s.info.ID, "err", err)
		}
	})
}
