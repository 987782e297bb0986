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
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// Bounds of one inventory. What lies past them is left out and the result says
// that it is truncated.
const (
	stockTime     = 20 * time.Second
	stockDepth    = 32 // source trees are deep, too
	stockDirs     = 200_000
	stockPackages = 20_000
	stockSources  = 5_000
	stockBytes    = 12 << 20  // of JSON, in all pages
	pageBytes     = 160 << 10 // of JSON in one; as base64 within channel.MaxJSON
	metadataBytes = 64 << 10
	fieldBytes    = 256 // of a name or version
	pathBytes     = 1024
)

// stock is the result of the last inventory, until its last page was fetched.
type stock struct {
	mu        sync.Mutex // guards all below; one inventory at a time
	take      uint64
	packages  []channel.InstalledPackage
	truncated bool
	closed    []string
	memory    *stockMemory // nil before the first
}

// inventory answers with the packages that are installed in the sandbox, or
// with one more page of them.
func (a *Agent) inventory(ctx context.Context, stream *channel.Conn, ask *channel.InventoryAsk) error {
	if ask == nil {
		ask = &channel.InventoryAsk{}
	}
	a.stock.mu.Lock()
	defer a.stock.mu.Unlock()
	if ask.Take == 0 {
		a.takeStock(ctx, *ask)
	}
	page, err := a.stock.page(ask)
	if err != nil {
		return reply(stream, err)
	}
	body, err := json.Marshal(page)
	if err != nil {
		return reply(stream, err)
	}
	return stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Body: body})
}

// takeStock walks the disk and keeps what it finds; a.stock.mu is held.
func (a *Agent) takeStock(ctx context.Context, ask channel.InventoryAsk) {
	ctx, cancel := a.clock.within(ctx, stockTime)
	defer cancel()
	if a.stock.memory == nil {
		a.stock.memory = newStockMemory()
	}
	t := &stocktaker{ctx: ctx, root: a.config.Root, memory: a.stock.memory, seen: map[string]bool{}, listed: map[string]bool{}, skip: map[string]bool{}, depth: ask.Depth}
	for _, dir := range ask.Skip {
		t.skip[filepath.Clean(dir)] = true
	}
	for _, place := range a.stockPlaces(ask) {
		t.place(place)
	}
	a.stock.take++
	a.stock.packages, a.stock.truncated, a.stock.closed = t.found, t.truncated, t.closed
}

// page is a part of the stock, at least one package unless there is none; the
// last one lets the stock go.
func (s *stock) page(ask *channel.InventoryAsk) (channel.Inventory, error) {
	if ask.Take != 0 && ask.Take != s.take || ask.From < 0 || ask.From > len(s.packages) {
		return channel.Inventory{}, errors.New("there is no such page of an inventory any more; take stock again")
	}
	page := channel.Inventory{Take: s.take, Truncated: s.truncated}
	size, end := 0, ask.From
	for ; end < len(s.packages); end++ {
		size += jsonSize(s.packages[end])
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

func jsonSize(p channel.InstalledPackage) int {
	data, err := json.Marshal(p)
	if err != nil {
		return pageBytes // text always marshals
	}
	return len(data) + 1
}

// stockPlaces are where to look, those first that a command can write to.
func (a *Agent) stockPlaces(ask channel.InventoryAsk) []string {
	mounts := a.mounts()
	places := slices.Clone(ask.Places)
	if len(places) == 0 {
		places = slices.Concat(a.usualPlaces(ask.Skip), mounts)
	}
	for i, place := range places {
		places[i] = filepath.Clean(place)
	}
	// What lies below a directory to skip is skipped, too, unless a mount between
	// them is to be looked into.
	return slices.DeleteFunc(places, func(place string) bool {
		nearest := ""
		for _, mount := range slices.Concat(mounts, ask.Places, ask.Skip) {
			if len(mount) > len(nearest) && below(place, mount) {
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
	if identity, err := a.current(); err == nil {
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
		if place := "/" + entry.Name(); entry.IsDir() && place != "/usr" && place != "/var" && place != "/boot" && !isSystem(place) {
			places = append(places, place)
		}
	}
	places = append(places, "/var/tmp", sharedMemory, "/usr/local/lib/node_modules", "/usr/lib/node_modules")
	for _, pattern := range []string{"/usr/local/lib/python3*", "/usr/lib/python3*"} {
		if slices.ContainsFunc(skip, func(dir string) bool { return below(filepath.Dir(pattern), filepath.Clean(dir)) }) {
			continue
		}
		found, _ := filepath.Glob(a.config.Root + pattern) // the pattern is well formed
		for _, place := range found {
			places = append(places, strings.TrimPrefix(place, a.config.Root))
		}
	}
	return places
}

// below reports whether path is root or below it.
func below(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
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
		if place != "/" && !strings.HasPrefix(place, "/usr") && !isSystem(place) {
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

// sharedMemory is a directory that everybody may write to.
const sharedMemory = "/dev/shm"

// isSystem tells whether a path belongs to the kernel or to the agent.
func isSystem(path string) bool {
	if below(path, sharedMemory) {
		return false
	}
	for _, system := range []string{"/proc", "/sys", "/dev", "/run", "/etc", "/.cofferdam"} {
		if below(path, system) {
			return true
		}
	}
	return false
}
