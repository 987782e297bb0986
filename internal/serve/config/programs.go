package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// dockerSocket is the Docker daemon's that is asked if the configuration names none.
const dockerSocket = "/var/run/docker.sock"

// HostFiles are the files and directories of the host that the daemon runs, or whose content it believes,
// whichever key of the configuration names them, and the configuration file itself: no sandbox may write
// them, or replace a link on the way to one. Files that the daemon only writes to are not among them.
func (c Config) HostFiles(p Paths) []string {
	all := append(c.Programs(), c.Believed(p)...)
	// The one that is asked if none is named: who uses it looks at it, since most hosts have none.
	all = append(all, dockerSocket)
	for _, t := range c.Tools {
		all = append(all, t.Directory) // whether it is there yet or not
	}
	for _, s := range c.Secrets {
		all = append(all, s.File)
		all = append(all, s.Vault.usedFiles()...)
		if s.OAuth != nil {
			all = append(all, s.OAuth.CAFile, s.OAuth.ClientSecret.File)
			all = append(all, s.OAuth.ClientSecret.Vault.usedFiles()...)
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !filepath.IsAbs(name) })
}

// Believed are those of HostFiles that the daemon does not run, and reads for more than one secret: it does
// not start where one of them may be a sandbox's. The files in the state directory are its own, but for
// links in it, which lead anywhere.
func (c Config) Believed(p Paths) []string {
	all := []string{
		p.File(), strings.TrimPrefix(c.Docker.Host, "unix://"),
		c.Audit.KeyFile, c.Listen.TLS.CertFile, c.Listen.TLS.KeyFile,
	}
	for _, u := range c.Upstreams {
		all = append(all, u.CAFile)
	}
	for _, h := range c.Network.Hosts {
		all = append(all, h.CAFile)
	}
	for _, w := range c.Approvals.Webhooks {
		all = append(all, w.SecretFile)
	}
	for _, dir := range []string{p.State, p.Policies(), p.NamedPolicies()} {
		entries, _ := os.ReadDir(dir) // one that can't be read is for who reads what is in it
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				all = append(all, filepath.Join(dir, e.Name()))
			}
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !filepath.IsAbs(name) })
}

// usedFiles are those that a vault is asked with; v may be nil.
func (v *Vault) usedFiles() []string {
	if v == nil {
		return nil
	}
	return []string{v.TokenFile, v.CAFile}
}

// Programs are the files of the host that decide what programs do which the daemon runs, and
// the directories in which these look for more.
func (c Config) Programs() []string {
	all := c.EnginePrograms()
	for _, t := range c.Tools {
		all = append(all, executable.Files(t.Command, t.Directory)...)
		all = append(all, executable.Places(t.Command, t.Directory, t.Environment)...)
	}
	commands := [][]string{c.Audit.Publish.Command}
	for _, s := range c.Secrets {
		commands = append(commands, s.Command)
		if s.OAuth != nil {
			commands = append(commands, s.OAuth.ClientSecret.Command)
		}
	}
	for _, argv := range commands {
		all = append(all, executable.Files(argv, "")...)
		all = append(all, executable.Places(argv, "", nil)...)
	}
	return all
}

// ToolHomes are those directories of HostFiles that tools have as HOME, in which a user's projects lie too:
// what a sandbox may write in one is no part of a tool, unless the tool names it.
func (c Config) ToolHomes() (all []string) {
	for _, t := range c.Tools {
		if home := t.Environment["HOME"]; filepath.IsAbs(home) && home != t.Directory {
			all = append(all, home)
		}
	}
	return all
}

// EnginePrograms are what engines run and boot, as far as the configuration names it.
func (c Config) EnginePrograms() (all []string) {
	for _, name := range []string{c.Runsc, c.MachineMonitor, c.GuestKernel} {
		if filepath.IsAbs(name) {
			all = append(all, name)
		}
	}
	return all
}
