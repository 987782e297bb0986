package archtest_test

import (
	"go/ast"
	"testing"
)

// startsPrograms are calls that start a program of the host, or find one.
func startsPrograms() map[string][]string {
	return map[string][]string{
		"exec":    {"Command", "CommandContext", "LookPath"},
		"os":      {"StartProcess"},
		"syscall": {"Exec", "ForkExec", "StartProcess"},
		"unix":    {"Exec"},
	}
}

// mayStart are the files outside of internal/kit/hostpath/executable that start programs, and why no sandbox
// decides which.
func mayStart() map[string]string {
	const (
		own    = "Cofferdam's own program, which mounts cover (mountpolicy.Rules.OwnPrograms)"
		engine = "an engine's program: looked at before the daemon starts, and covered or refused by mountpolicy since"
		system = "found by executable.System, or by its path in a directory of the host's own"
		inside = "it runs in a sandbox"
	)
	return map[string]string{
		"cmd/cofferdam/domain.go": system, "cmd/cofferdam/ssh.go": "found by executable.LookPath", "cmd/cofferdam/mcpinstall.go": "it is only compared with this program",
		"cmd/cofferdam/daemon.go": own, "internal/serve/selftest/installation.go": own, "internal/serve/daemon/role.go": own, "internal/serve/daemon/keeper.go": own,
		"internal/serve/daemon/hostprograms.go": "it looks at what it finds", "internal/packages/upstream/discover/asked.go": "discover.Clients.Apart looks at what is asked",
		"internal/serve/doctor/runsc.go": engine, "internal/serve/doctor/parts.go": system, "internal/sandboxes/engine/mounts/users.go": own, "internal/sandboxes/engine/mounts/disk.go": system,
		"internal/sandboxes/engine/gvisor/stage.go": engine, "internal/sandboxes/engine/gvisor/capabilities.go": engine, "internal/sandboxes/engine/gvisor/elevate.go": engine,
		"internal/sandboxes/engine/runc/flaws.go": system, "internal/sandboxes/engine/runc/stage.go": system, "internal/sandboxes/engine/runc/capabilities.go": system, "internal/sandboxes/engine/identity/identity.go": "it tells whether one is there, and runs none",
		"internal/sandboxes/engine/microvm/stage.go": engine, "internal/sandboxes/engine/microvm/firestage.go": engine, "internal/sandboxes/engine/microvm/firecracker/program.go": engine,
		"internal/sandboxes/engine/microvm/qemu.go": engine, "internal/sandboxes/engine/microvm/layout.go": system, "internal/sandboxes/engine/microvm/bundle.go": system,
		"internal/sandboxes/keeper/cgroupexec.go": "what the daemon has it start", "internal/packages/debian/apt.go": system, "internal/packages/debian/contents.go": system,
		"internal/sandboxes/template/aptoptions.go": system, "internal/sandboxes/template/tree.go": system, "internal/sandboxes/template/tool.go": system, "internal/sandboxes/template/skeletonimage.go": system,
		"internal/sandboxes/guest/boot/boot.go": inside, "internal/sandboxes/guest/sudo.go": inside, "internal/sandboxes/guest/elevated.go": inside, "internal/sandboxes/keeper/reaper.go": "what the daemon has it start",
		"internal/sandboxes/engine/fake/freezefiles.go": "of tests alone", "internal/sandboxes/engine/enginetest/roles.go": "of tests alone", "internal/sandboxes/engine/enginetest/syscalls.go": "of tests alone",
		"internal/sandboxes/engine/enginetest/agent.go": "of tests alone", "internal/kit/process/processtest/namespace.go": "of tests alone",
		"internal/sandboxes/sandbox/agenthome/agenthometest/homestest.go": "of tests alone",
		"internal/packages/installer/installertest/suite.go":              "of tests alone", "internal/serve/httpapi/backend/backendtest/commands.go": "of tests alone",
	}
}

// TestProgramsOfTheHostAreStartedByExecutable: who starts a program of the host says why no sandbox could
// have put it there.
func TestProgramsOfTheHostAreStartedByExecutable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal") && !below(f.pkg, "cmd") && !below(f.pkg, "client") || f.pkg == "internal/kit/hostpath/executable" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name := calledOf(call, startsPrograms()); name != "" {
				if seen[f.path] = true; mayStart()[f.path] == "" {
					t.Errorf("%s calls %s: start it by internal/kit/hostpath/executable, or say in mayStart why no sandbox could have put it there", f.set.Position(call.Pos()), name)
				}
			}
			return true
		})
	}
	for file := range mayStart() {
		if !seen[file] {
			t.Errorf("%s starts no program; take it off the list", file)
		}
	}
}

// mayAskEnvironment are the files that read this process's whole environment, each with the reason for which nothing that an agent wrote
// is believed by it: variables name files, of certificates, passwords and settings, that may lie in a project.
func mayAskEnvironment() map[string]string {
	const (
		cleaned = "executable.Environment or discover.Environment leaves out what lies where a sandbox may write"
		inside  = "it runs in a sandbox"
		own     = "Cofferdam's own program has it, which looks at it anew"
		tests   = "of tests alone"
	)
	return map[string]string{
		"internal/serve/daemon/hostprograms.go": cleaned, "internal/serve/daemon/upstreams.go": "Registries leaves it out", "internal/decide/secret/program/program.go": cleaned,
		"internal/decide/audit/publish/targets.go": cleaned, "cmd/cofferdam/ssh.go": cleaned, "cmd/cofferdam/doctor.go": "the doctor looks at each, and Registries leaves it out",
		"cmd/cofferdam/policyregistries.go":       "Registries leaves it out",
		"internal/serve/selftest/installation.go": own, "internal/sandboxes/keeper/cgroupexec.go": "what the daemon gave it",
		"internal/sandboxes/guest/elevated.go": inside, "internal/sandboxes/guest/sudo.go": inside,
		"internal/kit/process/processtest/namespace.go": tests, "internal/sandboxes/engine/enginetest/agent.go": tests,
	}
}

// TestTheEnvironmentIsAskedWithItsReason: who reads the whole environment says why nothing of an agent's is believed by it.
func TestTheEnvironmentIsAskedWithItsReason(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal") && !below(f.pkg, "cmd") && !below(f.pkg, "client") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if calledOf(call, map[string][]string{"os": {"Environ"}, "syscall": {"Environ"}}) != "" {
				if seen[f.path] = true; mayAskEnvironment()[f.path] == "" {
					t.Errorf("%s reads the environment: take hostEnvironment or executable.Environment, or say in mayAskEnvironment why it may", f.set.Position(call.Pos()))
				}
			}
			return true
		})
	}
	for file := range mayAskEnvironment() {
		if !seen[file] {
			t.Errorf("%s asks for no environment; take it off the list", file)
		}
	}
}
