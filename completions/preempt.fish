# SPDX-License-Identifier: MIT
# Completion for fish, for all the programs: candidates.sh prints the candidates. "make install"
# installs this file under the name of each program, under which fish looks for it.

function __preempt_complete -a candidates
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    for line in (sh $candidates $words "$cur" 2>/dev/null)
        set -l own (string match -r '^:([a-z]+) (.*)$' -- $line)
        or begin
            echo -- $line
            continue
        end
        set -l typed (string sub -s (math (string length -- "$own[3]") + 1) -- "$cur")
        switch $own[2]
            case files
                printf "%s\n" $own[3](__fish_complete_path $typed)
            case directories
                printf "%s\n" $own[3](__fish_complete_directories $typed '')
            case commands
                printf "%s\n" $own[3](complete -C "$typed")
            case line
                complete -C (string join ' ' -- (string escape -- $words[(math $own[3] + 1)..]) $cur)
        end
    end
end

set -l candidates (path resolve (status dirname)/{,../../preempt/}candidates.sh | path filter -r)[1]
complete -c (basename (status filename) .fish) -f -a "(__preempt_complete $(string escape -- $candidates))"
