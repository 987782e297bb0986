package autorun

import "slices"

// program is one that has files of its own, by which it runs others or is told how to behave.
type program struct {
	name  string
	level Level
	// names are of files or directories, folded; of a directory all that is in it counts. One
	// with a star in front is how a file's name ends, one with a star behind how it begins.
	names []string
}

// programs are all that are known here. This is the only list of files that a person's programs
// run or obey by themselves.
func programs() []program {
	return slices.Concat(ours(), repositories(), editors(), agents(), machines(), languages(), builds())
}

// ours say how the next run is made, and what it sees.
func ours() []program {
	return []program{{"cofferdam", Deciding, []string{"cofferdam.yaml", ".aiignore"}}}
}

// repositories are of version controls, of what these run, and of the hosts of repositories.
func repositories() []program {
	return []program{
		// git~1 is .git's short name on FAT and NTFS.
		{"git", Started, []string{".git", "git~1", ".githooks", ".gitattributes", ".gitmodules", ".gitconfig"}},
		{"other version controls", Started, []string{".hg", ".hgsub", ".jj", ".sl", ".svn", ".bzr", "_darcs", ".fslckout", "_fossil_"}},
		{"git's hooks", Started, []string{
			".husky", ".huskyrc*", "husky.config.*", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "prek.toml", ".overcommit.yml",
			"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json",
			"lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml", "lefthook-local.json",
			".lefthook-local.yml", ".lefthook-local.yaml", ".lefthook-local.toml", ".lefthook-local.json",
			".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", ".lefthook", ".lefthook-local",
			".lintstagedrc*", "lint-staged.config.*", ".simple-git-hooks.*", "simple-git-hooks.*", ".commitlintrc*", "commitlint.config.*",
		}},
		{"hosts of repositories", Started, []string{
			".github", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab", ".gitea", ".forgejo", ".circleci", ".travis.yml", ".travis.yaml",
			".drone.yml", ".drone.yaml", ".drone.star", ".drone.jsonnet", ".buildkite", ".woodpecker*", "jenkinsfile*", ".jenkins",
			"azure-pipelines*", ".azure-pipelines*", ".azuredevops", "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".cirrus.star",
			".semaphore", ".build.yml", ".builds", ".teamcity", ".tekton", ".screwdriver.yaml", ".harness", "codemagic.yaml", "buildspec.yml", "cloudbuild.yaml",
			"netlify.toml", "vercel.json", ".readthedocs.yaml", ".readthedocs.yml",
		}},
	}
}

// editors read these of a directory that is opened in them, and so do the environments that
// are made for it; checkers of code are run by editors while somebody types.
func editors() []program {
	return []program{
		{"editors", Started, []string{
			".vscode", "*.code-workspace", ".idea", ".fleet", ".vs", ".zed", ".helix", ".nova", ".run", "*.sublime-project", "*.sublime-workspace", "*.sublime-build",
			".vim", ".nvim", ".exrc", ".vimrc", ".lvimrc", ".nvimrc", ".nvim.lua", ".lazy.lua", ".neoconf.json", ".ycm_extra_conf.py",
			".emacs", ".emacs.d", ".spacemacs", ".doom.d", ".dir-locals.el", ".dir-locals-2.el", ".luarc.json", ".luarc.jsonc", ".merlin", "hie.yaml",
		}},
		{"environments", Started, []string{
			".devcontainer", ".devcontainer.json", ".gitpod*", ".replit", "replit.nix", ".idx", ".codesandbox", ".stackblitzrc",
			"devbox.json", ".devenv", "devenv.nix", "devenv.yaml", ".flox", "shell.nix", "flake.nix", "default.nix",
		}},
		{"checkers of code", Started, []string{
			".eslintrc*", "eslint.config.*", ".prettierrc*", "prettier.config.*", ".stylelintrc*", "stylelint.config.*", "tslint.json", ".markdownlint*",
			"postcss.config.*", ".postcssrc*", "tailwind.config.*", "svelte.config.*", "astro.config.*", "vite.config.*", "vitest.config.*", "vitest.workspace.*", "jest.config.*", "jest.setup.*",
			".pylintrc", "pylintrc", ".pylintrc.toml", ".flake8", "mypy.ini", ".mypy.ini", ".rubocop*", ".standard.yml", ".ruby-lsp", ".solargraph.yml", ".luacheckrc", ".php-cs-fixer*",
			".perlcriticrc", ".perltidyrc", ".formatter.exs",
		}},
	}
}

// agents are programs that do what a model says, in the directory that they are started in.
func agents() []program {
	return []program{
		{"agents", Started, []string{
			".mcp.json", "mcp.json", ".claude", ".claude.json", ".claude-plugin", ".codex", ".gemini", "gemini-extension.json", ".qwen", ".opencode", "opencode.json", "opencode.jsonc",
			".cursor", ".windsurf", ".codeium", ".kiro", ".roo", ".roomodes", ".cline", ".continue", ".copilot", ".amp", ".ampcode", ".trae", ".goose", ".crush", "crush.json", ".crush.json",
			".aider*", ".factory", ".augment", ".junie", ".agents", ".agent", ".openhands", ".amazonq", ".kilocode", ".kilocodemodes", ".devin", ".grok", ".firebender", ".mastracode", ".pi",
			".tabnine", ".zencoder", ".vibe", ".kimi", ".rovodev", ".warp",
		}},
		// They name no program, and steer one that may run any.
		{"instructions for agents", Instructing, []string{
			"claude.md", "claude.local.md", "agents.md", "agents.local.md", "agents.override.md", "agent.md", "gemini.md", "qwen.md", "crush.md", "crush.local.md", "warp.md", "skill.md",
			"copilot-instructions.md", "*.instructions.md", "*.prompt.md", "*.agent.md", "*.chatmode.md", "*.mdc",
			".cursorrules", ".windsurfrules", ".clinerules*", ".roo*", ".goosehints*", ".openhands_instructions", ".augment-guidelines", ".augment*", ".kilocoderules*", ".continuerules",
			".rules", ".airules", "airules.md", ".junie*", ".amazonq*", ".replit.md", "replit.md",
			// What agents are told to leave alone, and would read without it.
			".cursorignore", ".cursorindexingignore", ".claudeignore", ".geminiignore", ".codeiumignore", ".clineignore", ".aiexclude", ".gooseignore", ".qwenignore", ".crushignore", ".copilotignore", ".llmignore",
		}},
	}
}

// machines are of shells, package clients and debuggers, whatever language is worked in.
func machines() []program {
	return []program{
		{"shells", Started, []string{
			".envrc", ".direnv", ".env.fish", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
			".autoenv", ".autoenv.zsh", ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", "mise", ".config", ".rtx.toml", ".tool-versions", ".sdkmanrc",
		}},
		{"package clients", Started, []string{
			".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.cjs", "pnpm-workspace.yaml", ".npm-extension", "bunfig.toml", ".bunfig.toml",
			".cargo", "rust-toolchain", "rust-toolchain.toml", "build.rs", "pip.conf", "pip.ini", "uv.toml", ".pypirc", ".netrc", "_netrc", ".bundle", "gemfile", "gems.rb", ".mvn", "gradle-wrapper.properties", "init.gradle",
		}},
		{"debuggers", Started, []string{".gdbinit", ".gdbearlyinit", "*-gdb.py", "*-gdb.gdb", "*-gdb.scm", ".lldbinit*", ".pdbrc", ".pdbrc.py", ".perldb", ".radare2rc"}},
	}
}

// languages have interpreters that read these where they are started.
func languages() []program {
	return []program{{"interpreters", Started, []string{
		"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize", "*.pth", "pyvenv.cfg", ".pythonstartup", ".node_repl_history",
		".rprofile", ".renviron", ".irbrc", ".pryrc", ".iex.exs", ".ghci", ".ocamlinit", ".utoprc", ".lambdabot", ".scalarc", "startup.jl",
	}}}
}

// builds run when somebody builds, tests or installs, by a command for just that.
func builds() []program {
	return []program{
		{"builds", Used, []string{
			"makefile", "makefile.*", "gnumakefile", "bsdmakefile", "*.mk", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml", "taskfile.dist.yml", "taskfile.dist.yaml",
			"rakefile", "rakefile.rb", "*.rake", "*.gemspec", "thorfile", "guardfile", "setup.py", "setup.cfg", "pyproject.toml", "pipfile", "noxfile.py", "tox.ini", "pytest.ini", ".coveragerc",
			"conftest.py", "tasks.py", "fabfile.py", "dodo.py", "manage.py", "sconstruct", "wscript", "snakefile",
			"package.json", "package.yaml", "package.json5", "deno.json", "deno.jsonc", "tsconfig.json", "jsconfig.json", "turbo.json", "nx.json", "lerna.json", "gruntfile.*", "gulpfile.*", "jakefile",
			".babelrc*", "babel.config.*", "webpack.config.*", "rollup.config.*", "rspack.config.*", "rsbuild.config.*", "esbuild.config.*", "tsup.config.*", "next.config.*", "nuxt.config.*", "remix.config.*", "gatsby-*",
			"metro.config.*", "vue.config.*", "angular.json", "karma.conf.*", "playwright.config.*", "cypress.config.*", "wdio.conf.*", ".mocharc*", ".nycrc*", ".releaserc*", "release.config.*",
			"cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json", "*.cmake", "meson.build", "configure", "configure.ac", "autogen.sh", "compile_commands.json", "build.zig", "build.ninja",
			"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties", "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd", "pom.xml", "build.xml", "*.sbt", "build.sc", ".sbtopts", ".jvmopts",
			"cargo.toml", "go.work", "magefile.go", "mix.exs", "rebar.config", "dune", "dune-project", "stack.yaml", "cabal.project", "composer.json", "package.swift", "podfile",
			".bazelrc", "workspace.bazel", "build.bazel", "module.bazel", "tiltfile", "earthfile", "skaffold.yaml", "procfile", "brewfile",
			"dockerfile", "dockerfile.*", "*.dockerfile", "containerfile", "docker-compose*", "compose.yaml", "compose.yml", "docker-bake.hcl", "vagrantfile",
			".nvmrc", ".node-version", ".python-version", ".ruby-version", ".java-version", ".terraform-version", ".rspec",
		}},
	}
}
