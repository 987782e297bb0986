// Runs the install scripts of one package, in a sandbox that is there for this and is thrown
// away, and packs the package's own files. Called with the URL of the package, its sha256 and
// the folder for what comes of it. Whoever wrote the package runs code beside this: what it
// packs is looked into like a publisher's upload, and none of its own care is relied on.
'use strict';
const { execFileSync, spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const { join } = require('node:path');

const [url, sha256, folder] = process.argv.slice(1);

function fetched() {
  return new Promise((resolve, reject) => {
    const client = require(url.startsWith('https:') ? 'node:https' : 'node:http');
    client.get(url, (answer) => {
      const pieces = [];
      answer.on('error', reject);
      answer.on('data', (piece) => pieces.push(piece));
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(Buffer.concat(pieces));
        else reject(new Error(`the package can't be had: ${answer.statusMessage}`));
      });
    }).on('error', reject);
  });
}

// quiet takes from a package, and from those inside of it, what would run again.
function quiet(at) {
  const file = join(at, 'package.json');
  if (!fs.existsSync(file)) return;
  const own = JSON.parse(fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  if (own.scripts && typeof own.scripts === 'object') {
    for (const name of ['preinstall', 'install', 'postinstall']) delete own.scripts[name];
  }
  delete own.gypfile;
  fs.writeFileSync(file, JSON.stringify(own, null, 2) + '\n');
  fs.rmSync(join(at, 'binding.gyp'), { force: true });
  for (const name of folders(join(at, 'node_modules'))) {
    if (!name.startsWith('@')) quiet(join(at, 'node_modules', name));
    else for (const below of folders(join(at, 'node_modules', name))) quiet(join(at, 'node_modules', name, below));
  }
}

function folders(at) {
  if (!fs.existsSync(at)) return [];
  return fs.readdirSync(at, { withFileTypes: true }).filter((e) => e.isDirectory()).map((e) => e.name);
}

// plain leaves nothing but files and folders. Clients leave links out, too.
function plain(at) {
  for (const entry of fs.readdirSync(at, { withFileTypes: true })) {
    const path = join(at, entry.name);
    if (entry.isDirectory()) {
      fs.chmodSync(path, 0o755);
      plain(path);
    } else if (entry.isFile()) {
      fs.chmodSync(path, fs.statSync(path).mode & 0o111 ? 0o755 : 0o644);
    } else {
      fs.rmSync(path);
    }
  }
}

async function main() {
  const source = await fetched();
  if (createHash('sha256').update(source).digest('hex') !== sha256) throw new Error('the package is not the one that was admitted: its sha256 is another');
  const work = fs.mkdtempSync('/var/tmp/scripts-');
  fs.writeFileSync(join(work, 'source.tgz'), source);
  fs.writeFileSync(join(work, 'package.json'), '{"private":true}\n');
  const npm = spawnSync('npm', ['install', '--ignore-scripts=false', '--foreground-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', './source.tgz'], { cwd: work, stdio: 'inherit' });
  if (npm.error) throw npm.error;
  if (npm.status !== 0) process.exit(npm.status || 1);
  const [name] = Object.keys(JSON.parse(fs.readFileSync(join(work, 'package.json'), 'utf8')).dependencies);
  const made = join(work, 'made');
  fs.mkdirSync(made);
  fs.renameSync(join(work, 'node_modules', name), join(made, 'package'));
  plain(made);
  quiet(join(made, 'package'));
  execFileSync('tar', [
    '-C', made, '--sort=name', '--mtime=@499162500', '--owner=0', '--group=0', '--numeric-owner', '--format=posix',
    '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime,delete=mtime', '-czf', join(folder, 'made.tgz'), 'package',
  ], { stdio: 'inherit' });
}

main().catch((err) => {
  console.error(err.message);
  process.exit(1);
});
