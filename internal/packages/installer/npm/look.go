package npm

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// lookScript asks for the page of each release, as NAME@VERSION: a client that has a lockfile asks for nothing before it
// installs, and what the gateway was not asked for it can't tell of. It also asks for the head of each file: that has the
// gateway fetch it, verify it and look into it, and gives no byte of it. The plan tells of failures here.
const lookScript = `
const { execFileSync } = require('child_process');
const wanted = new Map();
for (const word of process.argv.slice(1)) {
  const at = word.lastIndexOf('@'), name = word.slice(0, at);
  wanted.set(name, (wanted.get(name) || []).concat(word.slice(at + 1)));
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
const left = [...wanted];
const work = async () => {
  for (let next; (next = left.pop()) !== undefined;) {
    const [name, versions] = next;
    try {
      const r = await fetch(base(name) + name.replace('/', '%2f'), { headers: { accept: 'application/vnd.npm.install-v1+json' } });
      const page = await r.json();
      for (const v of versions) {
        const release = (page.versions || {})[v];
        if (release) await fetch(release.dist.tarball, { method: 'HEAD' });
      }
    } catch (e) { console.error(name + ': ' + e.message); }
  }
};
Promise.all(Array.from({ length: 8 }, work));
`

// maxLooked bounds the releases of one command, whose words a system bounds.
const maxLooked = 1_000

// Look are commands that have the gateway look into the files of what a resolver of npm's packages chose, as its lockfile's
// reader has them.
func Look(choices []installer.Choice) (commands [][]string) {
	for some := range slices.Chunk(choices, maxLooked) {
		argv := []string{"node", "-e", lookScript, "--"}
		for _, c := range some {
			argv = append(argv, c.Name+"@"+c.Version)
		}
		commands = append(commands, argv)
	}
	return commands
}
