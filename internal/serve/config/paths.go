// Package config says where an installation keeps its things and how it is set
// up. Its file is optional and decoded strictly: an unknown key is an error.
//
// The state directory survives a reboot (log, cache, templates, CA); the runtime directory does not
// (sockets, the engine's own files).
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// Paths are an installation's two directories. There is one installation per
// user; root's serves the machine.
type Paths struct {
	State   string
	Runtime string
	// Config is the configuration file that somebody has named; "": none.
	Config string
	// Machine is where that of the machine's own installation may be, too; "": nowhere else.
	Machine string
}

// machineState is the state directory of the machine's own installation, and machineConfig where its
// configuration file may be, too.
const (
	machineState  = "/var/lib/cofferdam"
	machineConfig = "/etc/cofferdam/config.yaml"
)

// DefaultPaths are root's or the user's directories; COFFERDAM_STATE and
// COFFERDAM_RUNTIME override them, and COFFERDAM_CONFIG names the configuration file. A directory that is there already, of these two or of
// those beside them, and that another user owns or can write to is an error: what stands
// in it names programs to run and files to write, so nobody may read any of it before
// this was looked at. That is why every command gets its paths from here.
func DefaultPaths() (Paths, error) {
	p := Paths{State: machineState, Runtime: "/run/cofferdam"}
	if os.Geteuid() != 0 {
		user, err := userPaths()
		if err != nil {
			return Paths{}, err
		}
		p = user
	}
	if s := os.Getenv("COFFERDAM_STATE"); s != "" {
		p.State = s
	}
	if s := os.Getenv("COFFERDAM_RUNTIME"); s != "" {
		p.Runtime = s
	}
	p.Config = os.Getenv("COFFERDAM_CONFIG")
	if p.Config != "" && !filepath.IsAbs(p.Config) {
		return Paths{}, fmt.Errorf("COFFERDAM_CONFIG is %q; it must be an absolute path", p.Config)
	}
	for _, d := range []string{p.State, p.Runtime} {
		if !filepath.IsAbs(d) {
			return Paths{}, fmt.Errorf("the directory %q must be an absolute path", d)
		}
	}
	p.State, p.Runtime = filepath.Clean(p.State), filepath.Clean(p.Runtime)
	if os.Geteuid() == 0 && p.State == machineState {
		p.Machine = machineConfig
	}
	for _, d := range append([]string{p.State, p.Runtime}, p.beside()...) {
		if err := checkOwned(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Paths{}, err
		}
		if err := privatefile.CheckDir("the directory", filepath.Dir(d)); err != nil {
			return Paths{}, fmt.Errorf("%w; or set COFFERDAM_STATE and COFFERDAM_RUNTIME to directories elsewhere", err)
		}
	}
	return p, nil
}

// beside are the directories that have their names from the two, and lie where these do.
func (p Paths) beside() []string { return []string{p.Workspaces(), p.Place()} }

func userPaths() (Paths, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return Paths{}, fmt.Errorf("no home directory for the state; set COFFERDAM_STATE: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if runtime == "" {
		runtime = filepath.Join(os.TempDir(), "cofferdam-"+strconv.Itoa(os.Geteuid()))
	} else {
		runtime = filepath.Join(runtime, "cofferdam")
	}
	return Paths{State: filepath.Join(state, "cofferdam"), Runtime: runtime}, nil
}

// Make creates both directories and refuses ones that another user could have
// prepared: they must belong to this user, be no symlinks and be closed to
// writers.
func (p Paths) Make() error {
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{p.State, 0o711}, {p.Runtime, 0o700}} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return fmt.Errorf("make the directory: %w", err)
		}
		if err := checkOwned(d.path); err != nil {
			return err
		}
		if err := os.Chmod(d.path, d.mode); err != nil {
			return fmt.Errorf("close the directory: %w", err)
		}
	}
	return nil
}

// MakeOwned makes a directory beside the two, for this user alone, and refuses one that another
// user could have prepared.
func MakeOwned(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	return checkOwned(dir)
}

// DaemonSocket is where clients connect.
func (p Paths) DaemonSocket() string { return filepath.Join(p.Runtime, "daemon.sock") }

// DaemonLock is held by the installation's one daemon.
func (p Paths) DaemonLock() string { return filepath.Join(p.Runtime, "daemon.lock") }

// DaemonLog is where a daemon in the background writes.
func (p Paths) DaemonLog() string { return filepath.Join(p.Runtime, "daemon.log") }

// KeeperSocket is where the daemon reaches the keeper.
func (p Paths) KeeperSocket() string { return filepath.Join(p.Runtime, "keeper.sock") }

// KeeperLog is where the keeper writes.
func (p Paths) KeeperLog() string { return filepath.Join(p.Runtime, "keeper.log") }

// Uplink is where the keeper brings guests' streams to the gateway.
func (p Paths) Uplink() string { return filepath.Join(p.Runtime, "uplink.sock") }

// Runsc is the engine's own record of its instances.
func (p Paths) Runsc() string { return filepath.Join(p.Runtime, "runsc") }

// Runc is another engine's record.
func (p Paths) Runc() string { return filepath.Join(p.Runtime, "runc") }

// Stages is where the program is that lays out sandboxes.
func (p Paths) Stages() string { return filepath.Join(p.State, "stages") }

// Engines has second names of engines' programs.
func (p Paths) Engines() string { return filepath.Join(p.State, "engines") }

// Vouched has the files that people vouch for which decide what runs may do.
func (p Paths) Vouched() string { return filepath.Join(p.State, "vouched.json") }

// Place is an empty directory beside the runtime directory, which is closed to others: the
// users of sandboxes pass through it to mounts that only they see.
func (p Paths) Place() string { return p.Runtime + "-place" }

// Grounds is a directory for mounts that another daemon of the host shows to containers.
func (p Paths) Grounds() string { return filepath.Join(p.Runtime, "grounds") }

// Audit is the log's directory.
func (p Paths) Audit() string { return filepath.Join(p.State, "audit") }

// AuditSeen has the log's last checkpoint, apart from the log.
func (p Paths) AuditSeen() string { return filepath.Join(p.State, "audit.seen") }

// Clock keeps what time it is, for the next daemon to compare with.
func (p Paths) Clock() string { return filepath.Join(p.State, "clock") }

// Cache is the gateway's directory, and as root its root directory.
func (p Paths) Cache() string { return filepath.Join(p.State, "cache") }

// Templates is the template store's directory.
func (p Paths) Templates() string { return filepath.Join(p.State, "templates") }

// Approvals is the approval queue's file.
func (p Paths) Approvals() string { return filepath.Join(p.State, "approvals", "approvals.db") }

// Sandboxes is the file of the journal of sandboxes.
func (p Paths) Sandboxes() string { return filepath.Join(p.State, "sandboxes.db") }

// Authority is the CA's directory.
func (p Paths) Authority() string { return filepath.Join(p.State, "ca") }

// HostAuthorities has a CA for each set of hosts whose TLS the gateway ends.
func (p Paths) HostAuthorities() string { return filepath.Join(p.State, "host-ca") }

// Advisories keeps the facts about packages that were imported.
func (p Paths) Advisories() string { return filepath.Join(p.State, "advisory") }

// Policies keeps each policy document under its digest.
func (p Paths) Policies() string { return filepath.Join(p.State, "policies") }

// NamedPolicies has those that an operator has named.
func (p Paths) NamedPolicies() string { return filepath.Join(p.Policies(), "named") }

// Compiled keeps what engines of calls compile.
func (p Paths) Compiled() string { return filepath.Join(p.State, "compiled") }

// Baselines keeps what each template brings.
func (p Paths) Baselines() string { return filepath.Join(p.State, "baselines") }

// Frozen holds the images of frozen sandboxes.
func (p Paths) Frozen() string { return filepath.Join(p.State, "frozen") }

// Homes has what users' agents keep from one sandbox to the next.
func (p Paths) Homes() string { return filepath.Join(p.State, "homes") }

// Written has the directories of the host that sandboxes were ever given to write to.
func (p Paths) Written() string { return filepath.Join(p.State, "written") }

// Hidden has what ignore files have hidden from sandboxes.
func (p Paths) Hidden() string { return filepath.Join(p.State, "hidden") }

// Snapshots holds copies of sandboxes.
func (p Paths) Snapshots() string { return filepath.Join(p.State, "snapshots") }

// Builds has what clients upload for the templates that they build, and how builds ended.
func (p Paths) Builds() string { return filepath.Join(p.State, "builds") }

// Debian has apt's lists for the packages of builds. The host's apt reaches it as a user
// of its own.
func (p Paths) Debian() string { return filepath.Join(p.State, "debian") }

// Notices has what the command line says once: what this host can't enforce.
func (p Paths) Notices() string { return filepath.Join(p.State, "told") }

// Agent holds what every sandbox sees of ours.
func (p Paths) Agent() string { return filepath.Join(p.State, "agent") }

// Upstreams keeps the registries that were found.
func (p Paths) Upstreams() string { return filepath.Join(p.State, "upstreams") }

// checkOwned guards against a directory that somebody else made first in a
// world-writable place such as /tmp.
func checkOwned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at the directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; remove it or set COFFERDAM_STATE and COFFERDAM_RUNTIME", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user; set COFFERDAM_STATE and COFFERDAM_RUNTIME to directories of your own", path)
	case info.Mode().Perm()&0o002 != 0, info.Mode().Perm()&0o020 != 0 && int(stat.Gid) != os.Getegid():
		return fmt.Errorf("other users can write to %s (mode %04o), so that what is in it may be theirs: look at it, then chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// Workspaces has the copies of directories that runs work in. It is not in the state, of which
// nothing can be mounted.
func (p Paths) Workspaces() string { return p.State + "-workspaces" }

// Projects has which cofferdam.yaml this user has allowed.
func (p Paths) Projects() string { return filepath.Join(p.State, "projects.json") }
