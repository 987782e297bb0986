package plan

import "github.com/cofferdam-dev/cofferdam/internal/fault"

// touch asks the registry for every package that a lockfile names: a client
// that has a lockfile asks for nothing before it installs, and what the gateway
// was not asked for it can't tell of. What fails here is told by the plan.
const touch = `cat >"$out/touch.js" <<'END'
const fs = require('fs'), { execFileSync } = require('child_process');
const names = new Set();
for (const file of ['npm-shrinkwrap.json', 'package-lock.json']) {
  if (!fs.existsSync(file)) continue;
  for (const [place, entry] of Object.entries(JSON.parse(fs.readFileSync(file, 'utf8')).packages || {})) {
    const at = place.lastIndexOf('node_modules/');
    if (at >= 0 && !entry.link) names.add(entry.name || place.slice(at + 13));
  }
}
if (fs.existsSync('pnpm-lock.yaml')) {
  const text = fs.readFileSync('pnpm-lock.yaml', 'utf8');
  for (const m of text.matchAll(/^  '?\/?((?:@[^@\/\s]+\/)?[^@\/\s']+)@[^:\s']+'?:/gm)) names.add(m[1]);
}
const bases = new Map();
const base = (name) => {
  const scope = name.startsWith('@') ? name.split('/')[0] : '';
  if (!bases.has(scope)) {
    const ask = (key) => execFileSync('npm', ['config', 'get', key], { encoding: 'utf8' }).trim();
    const own = scope ? ask(scope + ':registry') : '';
    bases.set(scope, (own && own !== 'undefined' ? own : ask('registry')).replace(/\/*$/, '/'));
  }
  return bases.get(scope);
};
const left = [...names];
const work = async () => {
  for (let name; (name = left.pop()) !== undefined;) {
    try {
      const r = await fetch(base(name) + name.replace('/', '%2f'), { headers: { accept: 'application/vnd.npm.install-v1+json' } });
      await r.arrayBuffer();
    } catch (e) { console.error(name + ': ' + e.message); }
  }
};
Promise.all(Array.from({ length: 8 }, work));
END
node "$out/touch.js" || exit
`

// npm resolves with --package-lock-only. The lockfile has no registry's host.
func npm(words []string, p Project) (Rewrite, error) {
	if err := refuseAny("npm install", words, "the project's folder can't be another one", "--prefix", "-C"); err != nil {
		return Rewrite{}, err
	}
	words = without(words,
		[]string{"-g", "--global", "--no-package-lock", "--dry-run", "--ignore-scripts", "--package-lock-only"}, []string{"--location", "--package-lock"})
	own := []string{"npm", "install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"}
	return Rewrite{Client: NPM, Argv: p.script(append(npmLines(command(append(own, words...)...)), npmEmit()...)...)}, nil
}

// npmLines run the resolver, and touch what a lockfile has named before.
func npmLines(resolve string) []string {
	return []string{
		"had=",
		"for f in npm-shrinkwrap.json package-lock.json pnpm-lock.yaml; do [ -f $f ] && had=1; done",
		resolve,
		"if [ -n \"$had\" ]; then\n" + touch + "fi",
	}
}

func npmEmit() []string {
	return []string{
		"[ -f npm-shrinkwrap.json ] && mv npm-shrinkwrap.json package-lock.json",
		"emit " + framePackageLock + " package-lock.json",
	}
}

// npmCI has nothing to resolve: its plan is the lockfile.
func npmCI(words []string, p Project) (Rewrite, error) {
	for _, w := range words {
		if len(w) == 0 || w[0] != '-' {
			return Rewrite{}, fault.Invalid("npm ci takes no packages; %q can't be planned", clip(w))
		}
	}
	check := `[ -f npm-shrinkwrap.json ] || [ -f package-lock.json ] || { echo "npm ci needs a package-lock.json" >&2; exit 1; }`
	return Rewrite{Client: NPM, Argv: p.script(append(npmLines(check), npmEmit()...)...)}, nil
}

// pnpm resolves with --lockfile-only.
func pnpm(word string, words []string, p Project) (Rewrite, error) {
	if err := refuseAny("pnpm "+word, words, "it is not the project's install", "-g", "--global", "-C", "--dir", "--offline"); err != nil {
		return Rewrite{}, err
	}
	words = without(words, []string{"--lockfile-only", "--ignore-scripts", "--no-lockfile", "--frozen-lockfile"}, nil)
	resolve := command(append([]string{"pnpm", word, "--lockfile-only", "--ignore-scripts", "--no-frozen-lockfile"}, words...)...)
	if word == "add" {
		resolve = command(append([]string{"pnpm", word, "--lockfile-only", "--ignore-scripts"}, words...)...)
	}
	return Rewrite{Client: PNPM, Argv: p.script(append(npmLines(resolve), "emit "+framePnpmLock+" pnpm-lock.yaml")...)}, nil
}
