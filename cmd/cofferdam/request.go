package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

// runFlags are what was typed, before anything is looked at.
type runFlags struct {
	policy    string
	locks     []string
	lockMode  string
	template  string
	run       string
	task      string
	mounts    []string
	publish   []string
	env       []string
	workdir   string
	timeout   time.Duration
	json      bool
	detach    bool // when something is held
	keep      bool // go on when this process is gone
	agent     string
	isolation string
	home      string // what the agent keeps, by name
	workspace string // "copy"; "": none
	noProject bool   // whatever cofferdam.yaml says
	hooks     project.Hooks
	allowed   []byte // the policy of a project, as it was read when it was found allowed; nil: policy is to be read
	// allowedLocks gives the lockfiles of a project in the same way, by their absolute paths; nil: there is none.
	allowedLocks func(path string) (data []byte, named bool)
}

// registerSandbox adds the flags that say what a sandbox is made of. A command that means
// something narrower by one says so with describe.
func (f *runFlags) registerSandbox(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVarP(&f.policy, "policy", "p", "", "policy document (default: a built-in one that allows no package)")
	set.StringArrayVarP(&f.locks, "lockfile", "l", nil, "hold installations to a lockfile; may be repeated")
	set.StringVar(&f.lockMode, "lock-mode", "", "frozen: nothing outside the lockfiles; prefer: other names as the policy says (default: the policy's, or frozen)")
	set.StringVarP(&f.template, "template", "t", "", "root filesystem (see cofferdam template list)")
	isolationFlag(cmd, &f.isolation, "engine that isolates the sandbox, or auto or hardware (default: what the policy asks for)")
	set.StringVar(&f.run, "run-id", "", "id of this run in the record (default: a new one)")
	set.StringVar(&f.task, "task", "", "what the run is for, in words, for the record")
	set.StringArrayVar(&f.mounts, "mount", nil, "show a host path inside: SOURCE:DESTINATION[:rw], read-only without :rw")
	set.StringArrayVarP(&f.env, "env", "e", nil, "set a variable inside: NAME=VALUE, or NAME to take the host's value")
	set.StringVarP(&f.workdir, "workdir", "w", "", "directory inside in which the command starts")
	refuseRepeated(set, "policy", "template", "isolation", "lock-mode", "run-id")
	registerCompletion(cmd, "policy", completePolicyFile)
	registerCompletion(cmd, "lockfile", completeFiles("txt", "lock", "toml", "json", "yaml", "sum"))
	registerCompletion(cmd, "lock-mode", completeWords(lockModes()...))
	registerCompletion(cmd, "template", completeTemplates)
	registerCompletion(cmd, "run-id", completeRuns)
	incomplete(cmd, "task", "env", "workdir")
}

// describeFlags changes what the help says of flags.
func describeFlags(cmd *cobra.Command, usages map[string]string) {
	for flag, usage := range usages {
		cmd.Flags().Lookup(flag).Usage = usage
	}
}

// sandboxRequest turns the flags into what the daemon is asked for. All that
// can be wrong with them is found here, before anything is made.
func (f runFlags) sandboxRequest(cwd string) (api.CreateSandbox, error) {
	req := api.CreateSandbox{
		Run: f.run, Task: f.task, Template: f.template, Isolation: f.isolation, Workdir: f.workdir,
	}
	if f.timeout < 0 {
		return req, fault.Invalid("--timeout is %s; it must be above 0, such as 90s or 5m", f.timeout)
	}
	if f.workdir != "" && !filepath.IsAbs(f.workdir) {
		return req, fault.Invalid("--workdir %q must be an absolute path inside the sandbox, such as /workspace", f.workdir)
	}
	var err error
	if req.Mounts, err = parseMounts(cwd, f.mounts); err != nil {
		return req, err
	}
	if req.Env, err = parseEnv(f.env); err != nil {
		return req, err
	}
	var rules policy.LockRules
	if f.policy != "" {
		if req.Policy, rules, err = readPolicy(f.policy, f.allowed); err != nil {
			return req, err
		}
	}
	if err = f.outfit(&req); err != nil {
		return req, err
	}
	if req.Lockfiles, err = f.lockfiles(cwd, req.Policy.Source, rules); err != nil {
		return req, err
	}
	req.LockMode = f.lockMode
	if req.Workdir == "" {
		req.Workdir = insideOf(cwd, req.Mounts)
	}
	return req, client.CheckText(req)
}

func parseMounts(cwd string, specs []string) ([]api.Mount, error) {
	var mounts []api.Mount
	for _, spec := range specs {
		m, err := parseMount(cwd, spec)
		if err != nil {
			return nil, err
		}
		for _, other := range mounts {
			if other.Destination == m.Destination {
				return nil, fault.Invalid("--mount names the destination %s twice", m.Destination)
			}
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// parseMount reads SOURCE:DESTINATION[:rw|:ro], as a project's settings are read, too.
func parseMount(cwd, spec string) (api.Mount, error) {
	source, destination, readWrite := project.SplitMount(spec)
	if source == "" || destination == "" {
		return api.Mount{}, fault.Invalid("--mount %q must be SOURCE:DESTINATION or SOURCE:DESTINATION:rw, such as .:/workspace:rw", spec)
	}
	m := api.Mount{Source: source, Destination: destination, ReadWrite: readWrite}
	if !filepath.IsAbs(m.Destination) {
		return m, fault.Invalid("--mount %q: the destination %q must be an absolute path inside the sandbox, such as /workspace", spec, m.Destination)
	}
	m.Destination = filepath.Clean(m.Destination)
	if !filepath.IsAbs(m.Source) {
		m.Source = filepath.Join(cwd, m.Source)
	}
	m.Source = filepath.Clean(m.Source)
	if _, err := os.Stat(m.Source); err != nil {
		return m, fault.Invalid("--mount %q: the source %s %s", spec, m.Source, because(err))
	}
	return m, nil
}

func parseEnv(specs []string) (map[string]string, error) {
	if len(specs) == 0 {
		return nil, nil //nolint:nilnil // no variables is a good answer
	}
	env := make(map[string]string, len(specs))
	for _, spec := range specs {
		name, value, given := strings.Cut(spec, "=")
		if name == "" || strings.ContainsRune(spec, 0) {
			return nil, fault.Invalid("--env %q must be NAME=VALUE, or NAME for the host's value", spec)
		}
		if !given {
			if value, given = os.LookupEnv(name); !given {
				return nil, fault.Invalid("--env %s takes the host's value, but there is no variable %s here; write --env %s=VALUE", name, name, name)
			}
		}
		env[name] = value
	}
	return env, nil
}

// insideOf is where the sandbox shows a host directory, "" if it does not. The
// deepest mount that covers it wins.
func insideOf(dir string, mounts []api.Mount) string {
	inside, depth := "", -1
	for _, m := range mounts {
		rel, err := filepath.Rel(resolved(m.Source), resolved(dir))
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") || len(m.Source) <= depth {
			continue
		}
		inside, depth = filepath.Join(m.Destination, rel), len(m.Source)
	}
	return inside
}

// resolved follows symbolic links as far as the path exists.
func resolved(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		return followed
	}
	return path
}
