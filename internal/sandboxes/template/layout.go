package template

import "slices"

// layout is what a template of the distribution's packages holds.
type layout struct {
	name  string
	about string
	// packages are those beyond the essential ones.
	packages []string
	// tools: those that come from registries, and a virtual environment for pip.
	tools bool
	// wheels: the packages of Python that the code interpreter's kernel needs and offers.
	wheels bool
	// manuals: manual pages stay.
	manuals bool
	// programs are what the packages bring to PATH beyond what every system has, for
	// who looks for one in a template that is not built.
	programs []string
}

// layouts are the templates that are built of the distribution's packages.
func layouts() []layout {
	debian := layout{
		name:  NameDebian,
		about: "a small Debian with python3, pip, uv, node, npm, pnpm, go, git and the usual tools; built once",
		packages: []string{
			"python3", "python3-pip", "python3-venv", "ca-certificates", "git", "bash",
			"coreutils", "curl", "procps", "less", "nano", "xz-utils", "zip", "unzip", "patch",
			"file", "jq", "ripgrep", "make", // agents call these without asking whether they are there
			"tzdata", "locales",
			"libstdc++6", "libatomic1", // of node
			"openssh-sftp-server", // scp and sftp into a sandbox
		},
		tools: true,
		programs: []string{
			"python3", "pip", "pip3", "git", "curl", "less", "nano", "xz", "zip", "unzip", "patch", "file", "jq", "rg", "make", "ps", "top", "free", "pgrep", "pkill", "watch",
		},
	}
	dev := debian
	dev.name = NameDev
	dev.about = "debian with a C compiler, vim, tmux, ssh and manual pages; larger, built once"
	dev.packages = append(slices.Clone(debian.packages), "gcc", "g++", "libc6-dev", "vim-tiny", "tmux", "man-db", "manpages", "openssh-client")
	dev.programs = append(slices.Clone(debian.programs), "gcc", "cc", "g++", "c++", "ld", "as", "ar", "vi", "vim.tiny", "tmux", "man", "ssh", "scp", "sftp", "ssh-keygen")
	dev.manuals = true
	interpreter := debian
	interpreter.name = NameInterpreter
	interpreter.about = "debian with kernels for Python and R, numpy, pandas, matplotlib and fonts for Chinese, Japanese, Korean and emoji, for the code interpreter; built once"
	interpreter.packages = append(slices.Clone(debian.packages), "r-base-core",
		"fonts-dejavu-core", "fonts-wqy-microhei", "fonts-symbola", "fonts-noto-color-emoji")
	interpreter.programs = append(slices.Clone(debian.programs), "R", "Rscript")
	interpreter.wheels = true
	return []layout{debian, dev, interpreter, {
		name:     NameBase,
		packages: []string{"python3", "python3-pip", "ca-certificates"},
	}}
}

// layoutOf is the layout of a template's name; false for the host template.
func layoutOf(name string) (layout, bool) {
	all := layouts()
	i := slices.IndexFunc(all, func(l layout) bool { return l.name == name })
	if i < 0 {
		return layout{}, false
	}
	return all[i], true
}
