package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// identity is what the last Configure said.
type identity struct {
	user      channel.User
	env       map[string]string
	workspace string // "" for none
	lasting   []byte // see lastingOf
}

// resolveUser gives the user that a command asks for: by name, or anyone by number, as
// whom nothing has to be known. A number has one spelling, so that root has two.
func (id *identity) resolveUser(name string) (channel.User, error) {
	switch name {
	case "", id.user.Name, strconv.Itoa(id.user.UID):
		return id.user, nil
	case "root", "0":
		return channel.User{Name: "root", Home: "/root"}, nil
	}
	if uid, err := strconv.ParseUint(name, 10, 32); err == nil && uid < nobodyAtAll && name == strconv.FormatUint(uid, 10) {
		return channel.User{Name: name, UID: int(uid), GID: int(uid), Home: "/"}, nil
	}
	return channel.User{}, fmt.Errorf("there is no user %.80q in the sandbox: it has %q and \"root\", and any other by its number", name, id.user.Name)
}

// nobodyAtAll is -1, which no user can have.
const nobodyAtAll = 1<<32 - 1

// configure gives the sandbox its identity. Done again, after a restore, it
// changes what differs.
func (a *Agent) configure(ctx context.Context, c *channel.Configure) error {
	if err := checkConfigure(c); err != nil {
		return err
	}
	lasting, err := lastingOf(*c)
	if err != nil {
		return err
	}
	a.mu.Lock()
	same := a.identity != nil && bytes.Equal(a.identity.lasting, lasting)
	a.mu.Unlock()
	// A sandbox of the pool had all that lasts before it was claimed, and nothing
	// has run in it since.
	if !same || a.commands.hasAny() {
		if err := a.settleIn(ctx, c); err != nil {
			return err
		}
	}
	a.tellTime(c.Now)
	if err := errors.Join(reseed(c.Seed), a.begetGeneration(c.Seed), a.proxy.setProxy(ctx, c.Proxy)); err != nil {
		return err
	}
	env := c.Env
	if c.Proxy {
		env = withProxy(env, c.Names)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.identity = &identity{user: c.User, env: env, workspace: c.Workspace, lasting: lasting}
	return nil
}

// settleIn writes the identity's files and sets what lasts: side by side what neither
// needs nor touches the other, because the start of a sandbox waits for all of it.
func (a *Agent) settleIn(ctx context.Context, c *channel.Configure) error {
	parts := []func() error{
		func() error { return a.writeIdentity(c) },
		func() error { return a.writeTrust(c.CAPEM) },
		a.writeHooks,
		func() error { return errors.Join(a.setHardLimits(c.Limits), a.names.knowNames(ctx, c.Names)) },
	}
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { errs[i] = part() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// lastingOf is what of a configuration is written to files and set on the agent.
func lastingOf(c channel.Configure) ([]byte, error) {
	c.Env, c.Seed, c.Now, c.Proxy = nil, nil, 0, false
	return json.Marshal(c)
}

// checkConfigure refuses what would break files that others read by line.
func checkConfigure(c *channel.Configure) error {
	if c == nil {
		return errors.New("a configure call needs its body")
	}
	if !isHostname(c.Hostname) {
		return fmt.Errorf("%.80q is not a host name", c.Hostname)
	}
	if !isUserName(c.User.Name) || c.User.UID < 0 || c.User.GID < 0 {
		return fmt.Errorf("%.80q with uid %d and gid %d is not a user", c.User.Name, c.User.UID, c.User.GID)
	}
	if c.MachineID != "" && !isMachineID(c.MachineID) {
		return fmt.Errorf("%.80q is not a machine id: 32 hexadecimal digits", c.MachineID)
	}
	if !filepath.IsAbs(c.User.Home) || strings.ContainsAny(c.User.Home, ":\n\x00") {
		return fmt.Errorf("%.80q is not a home directory", c.User.Home)
	}
	return nil
}

func isMachineID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}

func isUserName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_-", r) {
			return false
		}
	}
	return name != "" && len(name) <= 32 && name[0] != '-'
}

// writeIdentity writes what says who this is: names, the user, its directories.
func (a *Agent) writeIdentity(c *channel.Configure) error {
	if a.config.Root == "" {
		a.setHostname(c.Hostname)
	}
	files := []struct{ path, content string }{
		{"/etc/hostname", c.Hostname + "\n"},
		{"/etc/hosts", "127.0.0.1 localhost " + c.Hostname + "\n::1 localhost ip6-localhost\n"},
		{"/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:10 attempts:2\n"},
	}
	if c.MachineID != "" {
		files = append(files, struct{ path, content string }{"/etc/machine-id", c.MachineID + "\n"})
	}
	for _, file := range files {
		if err := replaceFile(a.config.Root+file.path, []byte(file.content)); err != nil {
			return err
		}
	}
	a.addUser(c.User)
	if err := a.makeHome(c.User); err != nil {
		return fmt.Errorf("the home directory can't be made: %w", err)
	}
	if err := a.makeWorkspace(c); err != nil {
		return fmt.Errorf("the workspace can't be made: %w", err)
	}
	if err := a.ownDirectories(c); err != nil {
		return fmt.Errorf("a directory of the home can't be the user's: %w", err)
	}
	return nil
}

// ownDirectories gives the user directories below its home. No link leads out of that.
func (a *Agent) ownDirectories(c *channel.Configure) error {
	if len(c.Owned) == 0 {
		return nil
	}
	home, err := os.OpenRoot(a.config.Root + c.User.Home)
	if err != nil {
		return err
	}
	defer home.Close() //nolint:errcheck // A directory handle.
	for _, name := range c.Owned {
		info, err := home.Lstat(name)
		if err == nil && info.IsDir() {
			err = home.Lchown(name, c.User.UID, c.User.GID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeWorkspace makes the policy's directory for the user; one that is there
// already (a mount) is left as it is.
func (a *Agent) makeWorkspace(c *channel.Configure) error {
	if c.Workspace == "" {
		return nil
	}
	if !filepath.IsAbs(c.Workspace) {
		return fmt.Errorf("%.80q is not an absolute path", c.Workspace)
	}
	dir := a.config.Root + filepath.Clean(c.Workspace)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // readable, as a home is
		return err
	}
	if c.WorkspaceReadOnly {
		return nil
	}
	return os.Lchown(dir, c.User.UID, c.User.GID)
}

// setHostname sets the host name. A failure changes nothing else: a template without the right shows
// another name, no more.
func (a *Agent) setHostname(name string) {
	if now, err := os.Hostname(); err == nil && now == name {
		return
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		a.log.Warn("the host name can't be set", "error", err)
	}
}

// reseed adds the host's entropy: a copy of a sandbox must not repeat another's
// random numbers.
func reseed(seed []byte) error {
	if len(seed) == 0 {
		return nil
	}
	file, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("stir the random numbers: %w", err)
	}
	_, err = file.Write(seed)
	return errors.Join(err, file.Close())
}

// addUser names the user in passwd and group, where these can be written and
// have no such name yet. A template that knows the name keeps its own line.
func (a *Agent) addUser(user channel.User) {
	lines := []struct{ path, line, id string }{
		{"/etc/passwd", fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", user.Name, user.UID, user.GID, user.Home), strconv.Itoa(user.UID)},
		{"/etc/group", fmt.Sprintf("%s:x:%d:\n", user.Name, user.GID), strconv.Itoa(user.GID)},
	}
	for _, l := range lines {
		if err := addLine(a.config.Root+l.path, l.line, user.Name, l.id); err != nil {
			a.log.Info("the user is not named in a file", "file", l.path, "error", err)
		}
	}
}

// addLine adds line to a file of colon-separated fields unless one of its lines
// has the name. It comes before a line of another name with the same id, because
// whoever looks an id up takes the first; else at the end.
func addLine(path, line, name, id string) error {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var out []byte
	added := false
	for existing := range bytes.Lines(content) {
		fields := strings.SplitN(string(existing), ":", 4)
		if fields[0] == name {
			return nil
		}
		if !added && len(fields) > 3 && fields[2] == id {
			out, added = append(out, line...), true
		}
		out = append(out, existing...)
	}
	if !added {
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, line...)
	}
	return replaceFile(path, out)
}

// makeHome creates the home directory and gives it to the user; one that
// exists keeps its content and gets its owner.
func (a *Agent) makeHome(user channel.User) error {
	home := a.config.Root + user.Home
	if err := os.MkdirAll(home, 0o755); err != nil { //nolint:gosec // a home is readable, as on any system
		return err
	}
	info, err := os.Lstat(home)
	if err != nil {
		return err
	}
	if owner, ok := fileOwner(info); ok && owner == user.UID {
		return nil
	}
	return os.Lchown(home, user.UID, user.GID)
}

// replaceFile makes path a regular file with the content, readable by all. A
// symbolic link there is replaced, not followed; only where the file is a mount
// of its own is it written in place.
func replaceFile(path string, content []byte) error {
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // system directories are readable
		return err
	}
	if err := atomicfile.ReplaceVolatile(path, content, 0o644); !errors.Is(err, unix.EBUSY) {
		return err
	}
	return os.WriteFile(path, content, 0o644) //nolint:gosec // everybody reads these
}
