package autorun

import "slices"

// Scope is which paths that a file names are as that file itself, since a program that obeys it
// runs or reads them, too.
type Scope int

// Scopes.
const (
	// ScopeNone: none. The file runs on another machine, or names nothing.
	ScopeNone Scope = iota
	// ScopeImports: those after an @, which agents read with the file.
	ScopeImports
	// ScopeFiles: files.
	ScopeFiles
	// ScopeTaken: files, and directories behind a word that takes one, as "cwd" does. Any other
	// directory is one to read or to leave alone.
	ScopeTaken
	// ScopeDirs: files and directories.
	ScopeDirs
	// ScopeSealed: none, whatever else the path's names are.
	ScopeSealed
)

// program is one that has files of its own, by which it runs others or is told how to behave.
type program struct {
	name  string
	level Level
	scope Scope
	// names are of files or directories, folded; of a directory all that is in it counts. One
	// with a star in front is how a file's name ends, one with a star behind how it begins, and one
	// of several parts is the end of a path. One with an equals sign in front is of a file alone:
	// directories of others have that name, too.
	names []string
}

// programs are all that are known here. This is the only list of files that a person's programs
// run or obey by themselves.
func programs() []program {
	return slices.Concat(ownPrograms(), repositories(), editors(), agents(), machines(), languages(), builds(), harmless())
}

// ownPrograms say how the next run is made, and what it sees.
func ownPrograms() []program {
	return []program{{"cofferdam", Deciding, ScopeNone, []string{"cofferdam.yaml", ".aiignore"}}}
}

// repositories are of version controls, of what these run, and of the hosts of repositories.
func repositories() []program {
	return []program{
		// git~1 is .git's short name on FAT and NTFS.
		{"git", Started, ScopeDirs, []string{".git", "git~1", ".githooks", ".gitconfig"}},
		// Their paths are what something is said about; a program is only named by git's settings.
		{"git's lists", Started, ScopeNone, []string{".gitattributes", ".gitmodules"}},
		{"other version controls", Started, ScopeFiles, []string{".hg", ".hgsub", ".hgrc", ".hgcheck", ".jj", ".sl", ".svn", ".bzr", "_darcs", ".fslckout", "_fossil_"}},
		{"git's hooks", Started, ScopeDirs, []string{".husky", ".git-hooks", "monorepo-hooks", "githooks", "git-hooks", ".lefthook", ".lefthook-local"}},
		{"settings of git's hooks", Started, ScopeTaken, []string{
			".huskyrc*", "husky.config.*", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "prek.toml", ".overcommit.yml", ".captainhook", "captainhook.json", "grumphp.yml", "grumphp.yml.dist",
			"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json",
			"lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml", "lefthook-local.json",
			".lefthook-local.yml", ".lefthook-local.yaml", ".lefthook-local.toml", ".lefthook-local.json",
			".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json",
			".lintstagedrc*", "lint-staged.config.*", ".simple-git-hooks.*", "simple-git-hooks.*", ".commitlintrc*", "commitlint.config.*",
		}},
		{"hosts of repositories", Started, ScopeNone, []string{
			".github", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab", ".gitea", ".forgejo", ".circleci", ".travis.yml", ".travis.yaml",
			".drone.yml", ".drone.yaml", ".drone.star", ".drone.jsonnet", ".buildkite", ".woodpecker*", "jenkinsfile*", ".jenkins",
			"azure-pipelines*", ".azure-pipelines*", ".azuredevops", "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".cirrus.star",
			".semaphore", ".build.yml", ".builds", ".teamcity", ".tekton", ".screwdriver.yaml", ".harness", "codemagic.yaml", "buildspec.yml", "cloudbuild.yaml",
			"netlify.toml", "vercel.json", ".vercel", ".netlify", "wercker.yml", ".ci", ".readthedocs.yaml", ".readthedocs.yml",
		}},
	}
}

// editors read these of a directory that is opened in them, and so do the environments that
// are made for it; checkers of code are run by editors while somebody types.
func editors() []program {
	return []program{
		{"editors", Started, ScopeFiles, []string{
			".vscode", "*.code-workspace", ".idea", ".fleet", ".zed", ".helix", ".nova", ".run", "*.sublime-project", "*.sublime-build",
			".vim", ".nvim", ".exrc", "_vimrc", "_exrc", "_nvimrc", ".gvimrc", ".vimrc.local", ".local.vimrc", ".localvimrc", ".nvimrc.lua", ".init.lua", ".kak*", ".kakrc", ".micro", ".lite_project.lua", ".projections.json", ".vimspector.json", ".lapce", ".theia", ".settings", ".bsp", "*.iml", "*.ipr", "*.iws", ".vimrc", ".lvimrc", ".nvimrc", ".nvim.lua", ".lazy.lua", ".neoconf.json", ".ycm_extra_conf.py",
			".emacs", ".emacs.d", ".spacemacs", ".doom.d", ".dir-locals.el", ".dir-locals-2.el", ".luarc.json", ".luarc.jsonc", ".merlin", "hie.yaml", "rust-analyzer.toml", ".rust-analyzer.toml", "rust-project.json", "zls.json", "zls.build.json", "ols.json", "erlang_ls.config", "_coqproject", "_rocqproject", ".clangd", "pyrightconfig.json", "basedpyrightconfig.json", ".pyre_configuration", ".lsp", ".lsp.json", "lsp.json", "elm-tooling.json",
		}},
		// They name modules, which editors load and checks of commits do.
		{"checkers with parts of their own", Started, ScopeDirs, []string{
			".gitlint", ".cspell.*", "cspell.*", "vetur.config.*", "apollo.config.*", ".graphqlrc*", "graphql.config.*", ".graphql-config*",
		}},
		{"servers", Started, ScopeFiles, []string{".htaccess", ".user.ini"}},
		// They list all that a project has, or what somebody has looked at.
		{"editors' own records", Started, ScopeNone, []string{".vs", "*.sublime-workspace", ".classpath", ".project", ".metals", ".bloop", ".ensime*"}},
		{"environments", Started, ScopeFiles, []string{
			".devcontainer", ".devcontainer.json", ".gitpod*", ".replit", "replit.nix", ".idx", ".codesandbox", ".stackblitzrc",
			"devbox.json", ".devenv", ".devbox", "devbox.lock", "devenv.local.nix", "devenv.yml", "devenv.nix", "devenv.yaml", ".flox", ".tmuxinator*", ".tmuxp*", ".tmux.conf", ".zellij", ".envrc.local", "shell.nix", "flake.nix", "flake.lock", "default.nix", "devenv.lock", "devshell.toml", "nix/sources.json", "npins",
		}},
		{"checkers of code", Started, ScopeFiles, []string{
			".eslintrc*", "eslint.config.*", ".prettierrc*", "prettier.config.*", ".stylelintrc*", "stylelint.config.*", "tslint.json", ".markdownlint*",
			"postcss.config.*", ".postcssrc*", "tailwind.config.*", "uno.config.*", "unocss.config.*", "windi.config.*", "wallaby.*", "svelte.config.*", "astro.config.*", "vite.config.*", "vitest.config.*", "vitest.workspace.*", "jest.config.*", "jest.setup.*",
			".pylintrc", "pylintrc", ".pylintrc.toml", ".flake8", "mypy.ini", ".mypy.ini", ".rubocop*", ".standard.yml", ".ruby-lsp", ".solargraph.yml", ".luacheckrc", ".php-cs-fixer*",
			".perlcriticrc", ".perltidyrc", "biome.json", "biome.jsonc", ".biome*", ".oxlintrc*", "oxlint.config.*", ".golangci.*", ".golangci", ".yamllint*", "ruff.toml", ".ruff.toml", ".shellcheckrc", ".ansible-lint", ".swiftlint.yml", ".swiftformat", ".scalafmt.conf", ".scalafix.conf", ".credo.exs", "phpstan.neon*", "psalm.xml*", "phpcs.xml*", "steepfile", "latexmkrc", ".tflint.hcl", ".hadolint.yaml", ".vale.ini", ".sqlfluff", ".xo-config*", "xo.config.*", ".remarkrc*", ".dprint.json", "dprint.json", "trunk.yaml", ".trunk", ".megalinter*", ".mega-linter.yml", ".formatter.exs",
		}},
	}
}

// agents are programs that do what a model says, in the directory that they are started in.
func agents() []program {
	return []program{
		{"agents", Started, ScopeTaken, []string{
			"mcp.json", "mcp.yaml", "mcp.yml", "mcp.toml", "mcp_config*", "mcp-config*", "mcp_settings*", "mcp-settings*", "mcp_servers*", "mcp-servers*", "*.mcp.json", "*-mcp.json", "*_mcp.json", ".mcp*", ".claude", ".claude.json", ".claude-plugin", ".codex", ".gemini", "gemini-extension.json", ".qwen", ".opencode", "opencode.json", "opencode.jsonc",
			".cursor", ".windsurf", ".codeium", ".kiro", ".roo", ".roomodes", ".cline", ".continue", ".copilot", ".amp", ".ampcode", ".trae", ".goose", ".crush", "crush.json", ".crush.json",
			".aider*", ".factory", ".augment", ".junie", ".agents", ".agent", ".openhands", ".amazonq", ".kilocode", ".kilocodemodes", ".devin", ".grok", ".firebender", ".mastracode", ".pi",
			".tabnine", ".zencoder", ".opencode.json", "codebuff.json", ".codebuff", ".codebuddy", ".qoder", ".iflow", ".letta", ".cody", ".sourcegraph", ".antigravity", ".jules", ".droid", ".forge*", "forge.yaml", "forge.yml", ".plandex*", ".mentat*", ".sweep.yaml", "sweep.yaml", ".gptme*", "gptme.toml", ".openclaw", ".nanobot", ".hermes", ".lingma", ".codegeex", ".comate", ".marscode", ".neovate", ".auggie", ".ona", ".ampcoderc", ".cagent*", "cagent.yaml", ".a0", ".eca", ".serena", ".taskmaster", ".bmad-core", ".specify", ".cline_*", ".void", ".pearai", ".zed-agent", ".stakpak", ".ralph", "hooks.json", "hooks.yaml", "hooks.toml", ".hooks", "settings.local.json", ".vibe", ".kimi", ".rovodev", ".warp",
		}},
		// They name no program, and steer one that may run any.
		{"instructions for agents", Instructing, ScopeImports, []string{
			"claude.md", "claude.local.md", "opencode.md", "amazonq.md", "grok.md", "iflow.md", "codebuddy.md", "codebuff.md", "knowledge.md", "*.knowledge.md", "conventions.md", "codex.md", "copilot.md", "aider.md", "soul.md", "identity.md", "heartbeat.md", "bootstrap.md", "memory.md", "tools.md", "instructions.md", "prompt.md", "system_prompt.md", "system-prompt.md", "llms.txt", "llms-full.txt", "agents.md", "agents.local.md", "agents.override.md", "agent.md", "gemini.md", "qwen.md", "crush.md", "crush.local.md", "warp.md", "skill.md",
			"copilot-instructions.md", "*.instructions.md", "*.prompt.md", "*.agent.md", "*.chatmode.md", "*.mdc",
			".cursorrules", ".windsurfrules", ".clinerules*", ".roo*", ".goosehints*", ".openhands_instructions", ".augment-guidelines", ".augment*", ".kilocoderules*", ".continuerules",
			".rules", ".airules", "airules.md", ".junie*", ".amazonq*", ".replit.md", "replit.md",
			// The files that agents are told to leave alone, and would read without it.
			".cursorignore", ".cursorindexingignore", ".claudeignore", ".geminiignore", ".codeiumignore", ".clineignore", ".aiexclude", ".gooseignore", ".qwenignore", ".crushignore", ".copilotignore", ".llmignore",
		}},
	}
}

// machines are of shells, package clients and debuggers, whatever language is worked in.
func machines() []program {
	return []program{
		{"shells", Started, ScopeDirs, []string{
			".envrc", ".direnv", ".env*", ".rvmrc", ".xonshrc", ".ondirrc", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".aliases", ".fishrc", "config.fish", ".nu", "config.nu", "env.nu", ".elvish", ".autoenv*", ".smartcd*", ".shadowenv.d", ".zsh*", ".zlog*", ".zprofile", ".bash*", ".screenrc", ".dotenv", ".asdfrc", "proto.toml", ".prototools", ".pkgx.yaml", "hermit.hcl", ".hermit", ".jenv*", ".nix", ".wezterm.lua", ".profile",
			"mise.toml", "mise.local.toml", "mise.*", ".mise*", "mise", ".config", ".rtx.toml", ".tool-versions", ".sdkmanrc",
		}},
		{"package clients", Started, ScopeFiles, []string{
			".npmrc", ".yarnrc", ".pixi", "pixi.toml", "pixi.lock", "lean-toolchain", "lakefile.lean", "lakefile.toml", "lake-manifest.json", "condarc", ".condarc", "poetry.toml", ".poetry", ".pdm-python", ".pdm.toml", "pdm.toml", ".gclient", ".gclient_entries", "tools/bazel", ".bazeliskrc", ".bazelversion", ".pnp.cjs", ".pnp.loader.mjs", ".pnp.js", ".sbt", ".mill*", ".terraformrc", "terraform.rc", ".terragrunt*", ".pulumi", ".composer", ".gem", ".gemrc", ".rustup", "nuget.config", ".opam", ".cabal-sandbox", ".hex", ".mix", ".volta", ".nvs", ".fnm", ".corepack.env", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.cjs", "pnpm-workspace.yaml", ".npm-extension", "bunfig.toml", ".bunfig.toml",
			".cargo", "rust-toolchain", "rust-toolchain.toml", "build.rs", "pip.conf", "pip.ini", "uv.toml", ".pypirc", ".netrc", "_netrc", ".bundle", "gemfile", "gems.rb", ".mvn", "gradle-wrapper.properties", "init.gradle",
		}},
		// Files that an install or a tool has left, whose programs editors and clients run: all of it counts,
		// and nothing is looked for in it.
		{"installed packages", Started, ScopeSealed, []string{
			"node_modules", "__pypackages__", ".venv", "venv", "virtualenv", ".virtualenv*", "site-packages", "dist-packages", ".tox", ".nox", ".eggs", "conda-meta", "vendor/bin", "vendor/bundle", "_opam",
			".gradle", ".m2", ".ivy2", ".coursier", ".terraform", ".stack-work", "__pycache__", "*.pyc", "*.pyo", ".yarn", ".nuget", ".parcel-cache", ".turbo", ".nx", ".next", ".nuxt", ".svelte-kit", ".angular", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints",
		}},
		{"debuggers", Started, ScopeFiles, []string{".gdbinit", ".gdbearlyinit", "*-gdb.py", "*-gdb.gdb", "*-gdb.scm", ".lldbinit*", ".rdbgrc*", ".byebugrc", ".windbg", ".delve", ".dlv", ".cgdb", ".pwndbg", ".pdbrc", ".pdbrc.py", ".perldb", ".radare2rc"}},
	}
}

// languages have interpreters that read these where they are started.
func languages() []program {
	return []program{{"interpreters", Started, ScopeDirs, []string{
		"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize", "*.pth", "pyvenv.cfg", ".pythonstartup", ".python_history", ".pythonrc*", ".ipython", "ipython_config.py", ".jupyter", "jupyter_config.py", "jupyter_server_config.py", "jupyter_notebook_config.py", "jupyter_lab_config.py", "jupyter_config.json", "jupyter_server_config.json", "jupyter_notebook_config.json", "jupyter_lab_config.json", "jupyter_server_config.d", "jupyter_notebook_config.d", "jupyter_config.d", "jupyter_nbconvert_config.py", "jupyter_nbconvert_config.json", "jupyter_console_config.py", "jupyter_console_config.json", "jupyter_qtconsole_config.py", "jupyter_qtconsole_config.json", "jupyter_nbclassic_config.py", "jupyter_nbclassic_config.json", "ipython_config.json", "ipython_kernel_config.py", "ipython_kernel_config.json", ".octaverc", "octaverc", "startup.m", "startup.sci", ".scilab", "startupsav.m", ".julia", ".erlang", ".erlang.crypt", "user_default.erl", ".iex*", ".psqlrc*", ".sqliterc", ".duckdbrc", ".mongorc.js", ".mongoshrc.js", ".my.cnf", ".mylogin.cnf", ".ghcup", ".sbclrc", ".clisprc*", ".eclrc", ".ccl-init.lisp", ".racketrc", ".guile", ".swiplrc", ".plrc", ".gprc", ".maximarc", "maxima-init.mac", ".gnuplot", ".maple*", ".scala", ".ammonite", ".jshrc", ".groovy", ".lein*", "profiles.clj", ".perlrc", ".re.pl", ".tclshrc", ".wishrc", ".expectrc", ".rdebugrc", ".rtools", "rprofile.site", ".luarocks", ".node_repl_history",
		".rprofile", ".renviron", ".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".utoprc", ".lambdabot", ".scalarc", "startup.jl", "manifest.toml", "juliamanifest.toml", "config.nims", "nim.cfg", "*.nims", "*.nimble", "project.clj", "build.boot", "deps.edn", "shadow-cljs.edn", "bb.edn", "*.hxml", "dub.json", "dub.sdl",
	}}}
}

// harmless are hidden names of which it is known that nothing runs or obeys them, and whose formats name
// no command, module or template that a program runs: any other hidden name may be of a program that is
// not known here.
func harmless() []program {
	return []program{{"harmless", Plain, ScopeNone, []string{
		".gitignore", ".gitkeep", ".keep", ".ignore", ".rgignore", ".agignore", ".hgignore", ".hgtags", ".mailmap", ".git-blame-ignore-revs", ".dockerignore", ".containerignore", ".npmignore", ".yarnignore",
		".prettierignore", ".eslintignore", ".stylelintignore", ".markdownlintignore", ".vscodeignore", ".gcloudignore", ".helmignore", ".slugignore", ".cfignore", ".vercelignore", ".nowignore", ".bazelignore", ".terraformignore",
		".editorconfig", ".nojekyll", ".ds_store", ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", ".clang-format", ".clang-format-ignore",
		".changeset", ".well-known", ".coverage", ".snapshots", ".zenodo.json", ".codespellrc", ".typos.toml", ".licenserc.yaml", ".codecov.yml", ".coveralls.yml",
	}}}
}

// builds run when somebody builds, tests or installs, by a command for just that.
func builds() []program {
	return []program{
		{"builds", Used, ScopeNone, []string{
			"makefile", "makefile.*", "gnumakefile", "bsdmakefile", "*.mk", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml", "taskfile.dist.yml", "taskfile.dist.yaml",
			"rakefile", "rakefile.rb", "*.rake", "*.gemspec", "thorfile", "guardfile", "setup.py", "setup.cfg", "setup.hs", "setup.lhs", "*.cabal", "phpunit.xml*", "rector.php", "ember-cli-build.js", "rescript.json", "bsconfig.json", "build.mill", "environment.yml", "environment.yaml", "pyproject.toml", "pipfile", "noxfile.py", "tox.ini", "pytest.ini", ".coveragerc",
			"conftest.py", "tasks.py", "fabfile.py", "dodo.py", "manage.py", "sconstruct", "wscript", "snakefile",
			"package.json", "package.yaml", "package.json5", "deno.json", "deno.jsonc", "tsconfig.json", "jsconfig.json", "turbo.json", "nx.json", "lerna.json", "gruntfile.*", "gulpfile.*", "jakefile",
			".babelrc*", "babel.config.*", "webpack.config.*", "rollup.config.*", "rspack.config.*", "rsbuild.config.*", "esbuild.config.*", "tsup.config.*", "next.config.*", "nuxt.config.*", "remix.config.*", "gatsby-*",
			"metro.config.*", "vue.config.*", "angular.json", "karma.conf.*", "playwright.config.*", "cypress.config.*", "wdio.conf.*", ".mocharc*", ".nycrc*", ".releaserc*", "release.config.*",
			"cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json", "*.cmake", "meson.build", "configure", "configure.ac", "autogen.sh", "compile_commands.json", "build.zig", "build.ninja",
			"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties", "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd", "pom.xml", "build.xml", "*.sbt", "build.sc", ".sbtopts", ".jvmopts",
			"cargo.toml", "go.work", "magefile.go", "mix.exs", "rebar.config", "dune", "dune-project", "stack.yaml", "cabal.project", "composer.json", "package.swift", "podfile",
			// Editors build these when they open them, as far as they have to.
			"*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "*.vcxitems", "*.sqlproj", "*.wixproj", "*.esproj", "*.projitems", "*.shproj", "*.proj", "*.props", "*.targets", "*.rsp", "*.sln", "*.slnx", "global.json",
			"*.xcodeproj", "*.xcworkspace", "binding.gyp", "*.gyp", "*.gypi",
			".bazelrc", "workspace.bazel", "build.bazel", "module.bazel", "=workspace", "=build", "workspace.bzlmod", "*.bzl", "=buck", "pants.toml", "tiltfile", "earthfile", "skaffold.yaml", "procfile", "brewfile",
			"dockerfile", "dockerfile.*", "*.dockerfile", "containerfile", "docker-compose*", "compose.yaml", "compose.yml", "compose.override.yaml", "compose.override.yml", "docker-bake.hcl", "vagrantfile",
			".changeset/config.json", ".bumpversion.*", ".all-contributorsrc", ".browserslistrc", "ansible.cfg", "mkdocs.yml", "mkdocs.yaml", "conf.py", "hardhat.config.*", "truffle-config.js", "foundry.toml", "relay.config.*", "codegen.yml", "codegen.ts",
			".nvmrc", ".node-version", ".python-version", ".ruby-version", ".java-version", ".terraform-version", ".rspec",
		}},
	}
}
