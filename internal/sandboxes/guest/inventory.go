package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory/all"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// pageBytes bounds the JSON of one page; as base64 it is within channel.MaxJSON.
const pageBytes = 160 << 10

// installed is the result of the last inventory, until its last page was fetched.
type installed struct {
	mu       sync.Mutex // guards all below; one inventory at a time
	take     uint64
	packages []channel.InstalledPackage
	bounds   []channel.InventoryBound
	closed   []string
	memory   *inventory.Memory // nil before the first
}

// inventory answers with the packages that are installed in the sandbox, or
// with one more page of them.
func (a *Agent) inventory(ctx context.Context, stream *channel.Conn, ask *channel.InventoryAsk) error {
	if ask == nil {
		ask = &channel.InventoryAsk{}
	}
	a.installed.mu.Lock()
	defer a.installed.mu.Unlock()
	if ask.Take == 0 {
		a.listInventory(ctx, *ask)
	}
	page, err := a.installed.pageOf(ask)
	if err != nil {
		return replyCall(stream, err)
	}
	body, err := json.Marshal(page)
	if err != nil {
		return replyCall(stream, err)
	}
	return stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Body: body})
}

// listInventory walks the disk and keeps what it finds; a.installed.mu is held.
func (a *Agent) listInventory(ctx context.Context, ask channel.InventoryAsk) {
	ctx, cancel := a.clock.withTimeout(ctx, channel.MaxInventoryTime)
	defer cancel()
	layouts := all.Layouts()
	if a.installed.memory == nil {
		a.installed.memory = inventory.NewMemory(layouts)
	}
	found := inventory.Take(ctx, inventory.Request{
		Root: a.config.Root, Places: a.places(ask), Skip: ask.Skip, Depth: ask.Depth, Layouts: layouts, Memory: a.installed.memory,
	})
	a.installed.take++
	a.installed.packages, a.installed.bounds, a.installed.closed = found.Packages, found.Bounds, found.Closed
}

// pageOf is a part of the result, at least one package unless there is none; the last
// one gives the result up.
func (s *installed) pageOf(ask *channel.InventoryAsk) (channel.Inventory, error) {
	if ask.Take != 0 && ask.Take != s.take || ask.From < 0 || ask.From > len(s.packages) {
		return channel.Inventory{}, errors.New("there is no such page of an inventory any more; list them again")
	}
	page := channel.Inventory{Take: s.take, Truncated: len(s.bounds) > 0, Bounds: s.bounds}
	size, end := 0, ask.From
	for ; end < len(s.packages); end++ {
		size += inventory.Size(s.packages[end])
		if end > ask.From && size > pageBytes {
			page.Next = end
			break
		}
	}
	page.Packages = s.packages[ask.From:end]
	if page.Next == 0 {
		page.Closed = s.closed
		s.packages = nil
	}
	return page, nil
}

// places are where to look, those first that a command can write to.
func (a *Agent) places(ask channel.InventoryAsk) []string {
	mounts := a.mounts()
	places := slices.Clone(ask.Places)
	if len(places) == 0 {
		places = slices.Concat(a.usualPlaces(ask.Skip), mounts)
	}
	for i, place := range places {
		places[i] = filepath.Clean(place)
	}
	// A file below a directory to skip is skipped, too, unless a mount between
	// them is to be looked into.
	return slices.DeleteFunc(places, func(place string) bool {
		nearest := ""
		for _, mount := range slices.Concat(mounts, ask.Places, ask.Skip) {
			if len(mount) > len(nearest) && inventory.Below(place, mount) {
				nearest = mount
			}
		}
		return nearest != "" && slices.Contains(ask.Skip, nearest)
	})
}

// usualPlaces are the home, the workspace, everything at the top that is not the
// system's, and where the system keeps packages. A directory that is skipped whole is not
// read for those: the host's own are large.
func (a *Agent) usualPlaces(skip []string) []string {
	places := []string{}
	if identity, err := a.currentIdentity(); err == nil {
		places = append(places, identity.user.Home)
		if identity.workspace != "" {
			places = append(places, identity.workspace)
		}
	}
	top, err := os.ReadDir(cmp.Or(a.config.Root, "/"))
	if err != nil {
		top = nil // nothing of it can be read, so nothing is found there
	}
	for _, entry := range top {
		if place := "/" + entry.Name(); entry.IsDir() && place != "/usr" && place != "/var" && place != "/boot" && !inventory.IsSystem(place) {
			places = append(places, place)
		}
	}
	places = append(places, "/var/tmp", inventory.SharedMemory)
	for _, layout := range all.Layouts() {
		for _, pattern := range layout.Usual() {
			if slices.ContainsFunc(skip, func(dir string) bool { return inventory.Below(filepath.Dir(pattern), filepath.Clean(dir)) }) {
				continue
			}
			found, _ := filepath.Glob(a.config.Root + pattern) // the pattern is well formed
			for _, place := range found {
				places = append(places, strings.TrimPrefix(place, a.config.Root))
			}
		}
	}
	return places
}

// mounts are the mount points that may hold somebody's files.
func (a *Agent) mounts() []string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || a.config.Root != "" {
		return nil
	}
	var places []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		place := unescapeMount(fields[4])
		if place != "/" && !strings.HasPrefix(place, "/usr") && !inventory.IsSystem(place) {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

// unescapeMount undoes the kernel's octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
