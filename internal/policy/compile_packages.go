package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

func (c *compiler) packages(v value) {
	o := c.object(v, "default", "on_hold", "min_release_age", "age_source", "sdist", "install_scripts", "lockfile")
	if o == nil {
		return
	}
	p := &c.policy.packages
	if f, given := o.fields["default"]; given {
		p.byDefault, p.defaultGiven = c.effect(f), true
		switch p.byDefault {
		case Allow:
			c.says(f, "a package that no list names is allowed")
		case Hold:
			c.says(f, "a package that no list names waits for a person")
		case Deny:
			c.says(f, "a package that no list names is denied")
		}
	}
	if f, given := o.fields["sdist"]; given {
		p.sdist = c.effect(f)
		switch p.sdist {
		case Allow:
			c.says(f, "source distributions are allowed; building one runs its publisher's code in the sandbox")
		case Hold:
			c.says(f, "source distributions wait for a person")
		case Deny:
			c.says(f, "only wheels are allowed")
		}
	}
	if f, given := o.fields["install_scripts"]; given && c.effect(f) != "" {
		c.open(f, "no ecosystem with install scripts is served yet, so none run")
	}
	if f, given := o.fields["on_hold"]; given {
		c.onHold(f)
	}
	c.releaseAge(o)
	if f, given := o.fields["lockfile"]; given {
		c.lockfile(f)
	}
}

// effect reads allow, deny or hold.
func (c *compiler) effect(v value) Effect {
	if s, ok := c.word(v, string(Deny), string(Hold), string(Allow)); ok {
		return Effect(s)
	}
	return ""
}

func (c *compiler) onHold(v value) {
	s, ok := c.text(v)
	if !ok {
		return
	}
	wait, isWait := strings.CutPrefix(s, "wait ")
	switch {
	case s == "fail":
		c.says(v, "a held install fails at once with its request's id")
	case s == "freeze":
		c.open(v, "sandboxes are not frozen yet: a held install fails at once")
	case isWait:
		if _, ok := parseDuration(wait); !ok {
			c.fail(v.node, "packages.on_hold needs a duration after wait, like \"wait 20s\", and has %q", clip(wait, 40))
			return
		}
		c.open(v, "holds can not be approved yet: a held install fails at once")
	default:
		c.fail(v.node, "packages.on_hold must be fail, freeze or like \"wait 20s\", and is %q", clip(s, 40))
	}
}

func (c *compiler) releaseAge(o *object) {
	p := &c.policy.packages
	p.ageSource = ageTrusted
	source, sourceGiven := o.fields["age_source"]
	if sourceGiven {
		if s, ok := c.word(source, string(ageTrusted), string(ageFirstSeen), string(ageIgnored)); ok {
			p.ageSource = ageSource(s)
			switch p.ageSource {
			case ageTrusted:
				c.says(source, "a file's age counts from the time that the upstream gives; missing or future is a hold")
			case ageFirstSeen:
				c.open(source, "when a file was first seen is not kept yet: with min_release_age every file is held")
			case ageIgnored:
				c.says(source, "no age is judged")
			}
		}
	}
	age, given := o.fields["min_release_age"]
	if !given {
		return
	}
	s, ok := c.text(age)
	if !ok {
		return
	}
	if p.minAge, ok = parseDuration(s); !ok {
		c.fail(age.node, "%s must be a duration like \"7d\", \"36h\" or \"1d12h\", and is %q", age.path, clip(s, 40))
		return
	}
	if p.ageSource == ageIgnored {
		c.says(age, "not applied, because age_source is ignore")
		return
	}
	c.says(age, "a file younger than %s is denied, one of unknown age is held", s)
}

func (c *compiler) lockfile(v value) {
	o := c.object(v, "files", "mode", "trust")
	if o == nil {
		return
	}
	if f, given := o.fields["mode"]; given {
		c.word(f, "frozen")
	}
	if f, given := o.fields["trust"]; given {
		c.boolean(f)
	}
	files, given := o.fields["files"]
	if !given {
		c.fail(v.key, "packages.lockfile needs files, a list of lockfiles")
		return
	}
	elements, ok := c.list(files)
	if ok && len(elements) == 0 {
		c.fail(files.node, "packages.lockfile.files is empty; name a lockfile or leave packages.lockfile out")
	}
	var named []string
	for _, e := range elements {
		s, ok := c.text(e)
		if !ok {
			continue
		}
		ecosystem, known := lockfileEcosystem(s)
		if !known {
			c.fail(e.node, "%s: no lockfile is called %q", e.path, clip(s, 60))
			continue
		}
		c.policy.packages.locked[ecosystem] = true
		if !slices.Contains(named, string(ecosystem)) {
			named = append(named, string(ecosystem))
		}
	}
	if len(named) > 0 {
		c.open(v, "lockfiles are not enforced yet: every %s package is denied", strings.Join(named, ", every "))
	}
}

// lockfileEcosystem tells by its name whose lockfile a file is.
func lockfileEcosystem(path string) (pkgref.Ecosystem, bool) {
	base := path[strings.LastIndexByte(path, '/')+1:]
	switch base {
	case "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml":
		return pkgref.Python, true
	case "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock":
		return pkgref.Node, true
	case "go.sum":
		return pkgref.Go, true
	case "Cargo.lock":
		return pkgref.Rust, true
	}
	if strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt") {
		return pkgref.Python, true
	}
	return pkgref.Python, strings.HasPrefix(base, "pylock.") && strings.HasSuffix(base, ".toml")
}
