package main

import (
	"runtime/debug"
	"slices"
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	boot "gvisor.dev/gvisor/runsc/boot/filter"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

// gVisor's own build embeds compiled system call filters; the Go module leaves
// the maps for them empty and compiles at each start. They are reached by name.
// Should a later gVisor rename one, the build fails.

//go:linkname bootPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var bootPrograms map[string]precompiledseccomp.Program

//go:linkname gofersPrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var gofersPrograms map[string]precompiledseccomp.Program

// registerPrograms fills the maps, if the programs are of the very gVisor that
// this binary was built with. A process whose options have no program there
// compiles its filter as before: a name holds all that a filter depends on.
func registerPrograms() {
	if !current() {
		return
	}
	boot.ListPrecompiled() // The first call makes the map.
	gofer.ListPrecompiled()
	for _, p := range sentryPrograms() {
		bootPrograms[p.Name] = p
	}
	for _, p := range goferPrograms() {
		gofersPrograms[p.Name] = p
	}
}

// current tells whether the programs were generated from the linked gVisor.
func current() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Deps, func(dep *debug.Module) bool {
		return dep.Path == "gvisor.dev/gvisor" && dep.Version == programsOf && dep.Replace == nil
	})
}
