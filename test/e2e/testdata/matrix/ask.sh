# What every client's questions are asked with; read in by the others here.

# ask QUESTION COMMAND...: the question, all that the command prints, and how
# it ends.
ask() {
	echo "# $1"
	shift
	"$@" 2>&1
	echo "(exit $?)"
	echo
}

# The heading of what the run says at its end, which comes last.
summary() { echo '# what the run says at its end'; }
