//go:build !amd64

package main

import "gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"

const programsOf = ""

// sentryPrograms: none yet; the filter is built at each start.
func sentryPrograms() []precompiledseccomp.Program { return nil }

// goferPrograms: none yet; the filter is built at each start.
func goferPrograms() []precompiledseccomp.Program { return nil }
