package template

import (
	"slices"
	"strings"
)

// absence is why programs are not in a sandbox, and what to do there.
type absence struct {
	programs []string
	advice   string // goes on behind "NAME is not in this sandbox: "
}

// absences are the programs that people and agents call unasked, and that no template has that is built here; what the
// template host has, and what there is in place of these, is the host's matter. They are told by
// the shell, in place of "command not found", and are no programs: others ask whether a name is there, and
// would take a stub for what it stands for.
func absences() []absence {
	return []absence{
		{
			[]string{"apt", "apt-get", "aptitude", "apk", "dnf", "yum"},
			"packages of a distribution are put into a template when it is built, on the host (cofferdam template build dev has compilers and more tools). " +
				"pip, uv, npm, pnpm and go install here, as the policy allows",
		},
		{
			[]string{"docker", "docker-compose", "podman"},
			"no container starts in a sandbox. Run what you need as a process here, or have the policy list the host where it runs",
		},
		{
			[]string{"psql", "mysql", "redis-cli", "mongosh"},
			"a client of this kind is a package too (psycopg, PyMySQL, redis, pymongo), or belongs in a template that is built with it",
		},
		{[]string{"yarn", "bun"}, "npm and pnpm are here, and read the same package.json"},
		{[]string{"poetry", "pipenv", "pdm", "hatch"}, "uv and pip are here; pip install NAME brings it, if the policy allows that package"},
		{[]string{"conda", "mamba"}, "channels of conda are not served; pip and uv are here"},
		{[]string{"cargo", "rustc", "gem", "composer", "mvn"}, "packages of its registry are not served; Python's, Node's and Go's are"},
	}
}

// WhyAbsent says what to do where a program is not in a sandbox, in a sentence without its end; "": nothing is known of it.
func WhyAbsent(program string) string {
	for _, a := range absences() {
		if slices.Contains(a.programs, program) {
			return program + " is not in this sandbox: " + a.advice
		}
	}
	return ""
}

// absentProfile is a file of /etc/profile.d by which a login shell says WhyAbsent; bash alone has a place for it. The
// exit code stays that of a command that is not there.
func absentProfile() string {
	var text strings.Builder
	text.WriteString("[ -z \"${BASH_VERSION:-}\" ] || command_not_found_handle() {\n\tcase $1 in\n")
	for _, a := range absences() {
		text.WriteString("\t" + strings.Join(a.programs, "|") + ") echo \"$1 is not in this sandbox: " + a.advice + "\" >&2 ;;\n")
	}
	text.WriteString("\t*) echo \"bash: $1: command not found\" >&2 ;;\n\tesac\n\treturn 127\n}\n")
	return text.String()
}
