# SPDX-License-Identifier: MIT
# Completion for fish, of all the programs. What there is to complete is read from --help at the
# moment it is asked for, so it is always that of the program at hand. make install puts this file
# under the name of each program, which is how fish finds it.

# The words a value can be.
function __preempt_values -a kind help cur
    switch $kind
        case DIR
            __fish_complete_directories $cur ''
        case FILE PATH
            __fish_complete_path $cur
        case COMMAND
            __fish_complete_command
        case SIGNALS
            string replace SIG '' -- (kill -l | string split -n ' ')
        case '*'
            # "all (default) or chief: what it means", "min or max: what it means"
            if string match -q '*(default)*' -- $help; or string match -qr '^[a-z]+ or [a-z]+:' -- $help
                string replace -r ':.*' '' -- $help | string replace -ra '\([^)]*\)|,| or ' ' ' | string split -n ' '
                return
            end
            # "signal:TERM,USR1, file:PATH or command:TEXT"
            string match -ra '\b[a-z]+:(?=[A-Z])' -- $help
            test $kind != URL; or __fish_complete_path $cur
    end
end

function __preempt_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l program $words[1]

    # What follows "--" is another command line.
    if set -l at (contains -i -- -- $words)
        complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..]) $cur)
        return
    end

    set -l help ($program --help 2>/dev/null </dev/null)
    if set -l at (contains -i commands: $help)
        set -l commands
        for line in $help[(math $at + 1)..]
            string match -q '  *' -- $line; or break
            set -a commands (string replace -r '^  (\S+) +' '$1\t' -- $line)
        end
        # Options that all have may stand before the command.
        set -l command
        for word in $words[2..]
            contains -- $word (string replace -r '\t.*' '' -- $commands); and set command $word; and break
        end
        if test -z "$command"
            printf '%s\n' $commands --help --version
            return
        end
        set help ($program $command --help 2>/dev/null </dev/null)
    end

    set -l before $words[-1]
    set -l prefix ''
    # --option=value
    if string match -q -- '--*=*' $cur
        set before (string replace -r '=.*' '' -- $cur)
        set prefix $before=
        set cur (string replace -r '^[^=]*=' '' -- $cur)
    end
    set -l offered
    for line in $help
        set -l part (string match -r '^ +(-[a-zA-Z0-9]|)(?:, |)(--[a-z][a-z-]*)( [A-Z]+|) +(.*)$' -- $line)
        or continue
        if test -n "$part[4]"; and contains -- $before $part[2] $part[3]
            printf "$prefix%s\n" (__preempt_values (string trim $part[4]) $part[5] $cur)
            return
        end
        set -a offered $part[3]\t$part[5]
        test -z "$part[2]"; or set -a offered $part[2]\t$part[5]
    end
    if string match -q -- '-*' $cur
        printf '%s\n' $offered
    else
        __fish_complete_path $cur
    end
end

complete -c (basename (status filename) .fish) -f -a '(__preempt_complete)'
