package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// mountHints tells of each argument that names something on the host which the
// sandbox does not see: the likeliest reason for a command to fail. Where nothing was refused, which is another
// reason, the files count, too, that the command may read without a word of the directory in which it starts: not
// where that is a mount, which has its own.
func mountHints(argv []string, workdir string, mounts []api.Mount, refused bool) []string {
	var hints []string
	named := argv
	if !refused && !slices.ContainsFunc(mounts, func(m api.Mount) bool { return isBelow(workdir, m.Destination) }) {
		named = slices.Concat(argv, readUnasked(argv))
	}
	for _, arg := range named {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		path, ok := onHostOnly(arg, mounts)
		if !ok {
			continue
		}
		hint := fmt.Sprintf("%s is on the host, and the sandbox sees nothing of the host that is not mounted; try --mount .:/workspace:rw", arg)
		if cwd, err := os.Getwd(); err != nil || insideOf(path, []api.Mount{{Source: cwd, Destination: "/workspace"}}) == "" {
			hint = fmt.Sprintf("%s is on the host, and the sandbox sees nothing of the host that is not mounted; try --mount %s:/workspace:rw and name it below /workspace", arg, filepath.Dir(path))
		}
		if !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	return hints[:min(len(hints), 1)]
}

// anotherReason tells that a run was not given something that it asked for, which may be why its command failed.
func anotherReason(s api.RunSummary) bool {
	return len(s.Refused)+len(s.Missing)+len(s.Failed)+len(s.Names)+countHosts(s.Hosts, refusedHost)+toolCalls(s.Tools, uncalled) > 0
}

// readUnasked are the files that a command may read of the directory in which it starts though no word of it names
// them, as a project's client does.
func readUnasked(argv []string) []string {
	program := installer.Program(argv)
	if program == "make" {
		return []string{"Makefile", "makefile", "GNUmakefile"}
	}
	for _, i := range all.Installers() {
		if reader, ok := i.(installer.ProjectReader); ok && i.Name() == program {
			return reader.ReadsUnasked(argv)
		}
	}
	return nil
}

// onHostOnly returns the host path that an argument names, if it names one
// that no mount shows. A bare word counts only as a file, since any word may
// be the name of a directory; and what every system has is there inside, too.
func onHostOnly(arg string, mounts []api.Mount) (string, bool) {
	if arg == "" || strings.HasPrefix(arg, "-") || len(arg) > 4096 {
		return "", false
	}
	path, err := filepath.Abs(arg)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(path)
	if err != nil || (!strings.Contains(arg, "/") && !info.Mode().IsRegular()) {
		return "", false
	}
	if filepath.IsAbs(arg) {
		top, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if slices.Contains([]string{"", "bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr"}, top) {
			return "", false
		}
	}
	return path, insideOf(path, mounts) == ""
}

// lockHint names the lockfiles that lie in a mount, where none was given and something on no list was refused
// of their ecosystem; "" if there is none. Which of several is the client's nobody knows here.
func lockHint(refused []api.Package, request api.CreateSandbox) string {
	if len(request.Lockfiles) > 0 {
		return ""
	}
	for _, p := range refused {
		if p.Rule != "packages.default" {
			continue
		}
		found, written := lockfilesIn(request.Mounts, pkgref.Ecosystem(p.Ecosystem))
		if len(found) == 0 {
			continue
		}
		one := found[0]
		hint := fmt.Sprintf("a lockfile is in a mount; --lockfile %s holds the run to it, and with it says what requires what", one)
		if len(found) > 1 {
			one = "FILE"
			hint = fmt.Sprintf("lockfiles are in a mount: %s; --lockfile with the one that the client reads holds the run to it, and with it says what requires what", strings.Join(found, ", "))
		}
		if written {
			hint += "; the run could write there, so read it first, and say so: cofferdam project allow " + one
		}
		return hint
	}
	return ""
}

// lockfilesIn are an ecosystem's lockfiles in mounts, as a shell takes their names; written tells that the run could
// write one of them, so that a person has to see it before it decides.
func lockfilesIn(mounts []api.Mount, ecosystem pkgref.Ecosystem) (found []string, written bool) {
	for _, lock := range ecosystem.Lockfiles() {
		if strings.Contains(lock.Name, "*") {
			continue // what has any name may be something else
		}
		for _, m := range mounts {
			file := filepath.Join(m.Source, lock.Name)
			if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
				found, written = append(found, ui.Quoted(file)), written || m.ReadWrite
			}
		}
	}
	return found, written
}

// keepHint tells of a run that did nothing but install that what came in is gone with the sandbox, where it is so: not
// where the home directory is kept, or where the environment has a say in where the client installs.
func keepHint(argv []string, request api.CreateSandbox, installed []api.Package) string {
	if request.Home != nil || slices.ContainsFunc(slices.Collect(maps.Keys(request.Env)), placesInstall) {
		return ""
	}
	var writable []string // that the command can name by the words of the hint, from where it starts
	for _, m := range request.Mounts {
		if m.ReadWrite && (isBelow(request.Workdir, m.Destination) || strings.HasSuffix(m.Destination, "/.venv")) {
			writable = append(writable, m.Destination)
		}
	}
	for _, i := range all.Installers() {
		k, ok := i.(installer.Keeper)
		if !ok || !slices.ContainsFunc(installed, func(p api.Package) bool { return p.Ecosystem == string(i.Ecosystem()) }) {
			continue
		}
		if hint := k.KeepHint(argv, ui.ShellLine(argv), writable); hint != "" {
			return hint
		}
	}
	return ""
}

// shellHints tell of a project's install that a shell ran: clients may stop at the first release that they are refused, and only the
// whole install shows the rest. Of what the shell was told only an install that is plain to read is named.
func (r *runner) shellHints(s api.RunSummary) []string {
	shell := len(r.argv) > 2 && slices.Contains([]string{"sh", "bash", "dash", "zsh"}, filepath.Base(r.argv[0]))
	if !shell || len(r.flags.mounts) == 0 || !helpedByEntries(s) || r.installWords() != nil {
		return nil
	}
	words := []string{"--run", s.Run}
	for _, spec := range r.flags.mounts {
		words = append(words, "--mount", strings.TrimSuffix(spec, ":rw"))
	}
	var mounts []string
	for _, m := range r.request.Mounts {
		mounts = append(mounts, m.Destination)
	}
	workdir, install := r.flags.workdir, "INSTALL"
	if found, _ := plan.Installs(all.Installers(), r.argv, r.request.Workdir, mounts); len(found) > 0 {
		install = ui.ShellLine(found[0].Argv)
		if found[0].Dir != r.request.Workdir {
			workdir = found[0].Dir
		}
	}
	if workdir != "" {
		words = append(words, "--workdir", workdir)
	}
	return []string{"a shell ran the install, which may be refused more once this is let in; policy suggest tries the whole project if the install's own words stand at its end: cofferdam policy suggest " + ui.ShellLine(words) + " -- " + install}
}

// placesInstall tells of a variable by which a client of Python's may install elsewhere than into the sandbox's environment.
func placesInstall(name string) bool {
	return slices.ContainsFunc([]string{"PIP_", "UV_", "PYTHON", "VIRTUAL_ENV"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isBelow tells whether a directory inside is another one or in it.
func isBelow(dir, top string) bool {
	return dir == top || strings.HasPrefix(dir, strings.TrimSuffix(top, "/")+"/")
}
