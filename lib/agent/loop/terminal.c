/* SPDX-License-Identifier: MIT */
/*
 * The agent as a shell with one job: in the foreground of a terminal its command can read what is
 * typed, gets Ctrl-C, and is stopped and continued together with the agent.
 */
#include <signal.h>
#include <sys/wait.h>

#include "agent/loop/loop.h"
#include "agent/loop/terminal.h"

/* A single command gets the terminal when it starts; of several, the first one that asks. */
int agent_terminal_for(struct agent *agent)
{
	agent->terminal_lent = agent->command_count == 1 && terminal_is_used(&agent->terminal);
	return agent->terminal_lent ? agent->terminal.descriptor : 0;
}

static bool one_has_it(const struct agent *agent)
{
	for (size_t i = 0; i < agent->command_count; i++)
		if (agent->commands[i].process.pid &&
			terminal_is_of(&agent->terminal, agent->commands[i].process.pid))
			return true;
	return false;
}

static void stopped(struct agent *agent, const struct command *command, int number)
{
	bool asks = number == SIGTTIN || number == SIGTTOU;
	if (asks && terminal_lend(&agent->terminal, command->process.pid)) {
		agent->terminal_lent = true;
		subprocess_signal(&command->process, SIGCONT);
		return;
	}
	if (asks && one_has_it(agent))
		return; /* it waits until the command that has the terminal has ended */
	if (!asks && number != SIGTSTP)
		return; /* SIGSTOP was meant for the command alone */
	terminal_take_back(&agent->terminal, command->process.pid);
	/* No shell would continue the agent, so it was not stopped: Ctrl-Z has no effect. */
	if (!terminal_stop(number) && !asks) {
		(void)terminal_lend(&agent->terminal, command->process.pid);
		subprocess_signal(&command->process, SIGCONT);
	}
}

void agent_check_stopped(struct agent *agent)
{
	for (size_t i = 0; i < agent->command_count && agent->terminal.descriptor >= 0; i++) {
		siginfo_t info = {0};
		struct command *command = &agent->commands[i];
		if (command->process.pid &&
			waitid(P_PID, (id_t)command->process.pid, &info, WSTOPPED | WNOHANG) == 0 &&
			info.si_pid)
			stopped(agent, command, info.si_status);
	}
}

static void signal_all(struct agent *agent, int number)
{
	for (size_t i = 0; i < agent->command_count; i++)
		if (agent->commands[i].process.pid)
			subprocess_signal(&agent->commands[i].process, number);
}

void agent_stop(struct agent *agent)
{
	signal_all(agent, SIGTSTP);
	if (!terminal_stop(SIGTSTP))
		signal_all(agent, SIGCONT);
}

void agent_continued(struct agent *agent)
{
	for (size_t i = 0; i < agent->command_count; i++) {
		if (!agent->commands[i].process.pid)
			continue;
		bool lend = agent->terminal_lent || terminal_is_used(&agent->terminal);
		if (lend && agent->command_count == 1)
			(void)terminal_lend(&agent->terminal, agent->commands[i].process.pid);
		subprocess_signal(&agent->commands[i].process, SIGCONT);
	}
}

void agent_terminal_ended(struct agent *agent, const struct command *command)
{
	bool had = terminal_is_of(&agent->terminal, command->process.pid);
	terminal_take_back(&agent->terminal, command->process.pid);
	/* Others may be stopped because they asked for the terminal: continued, they ask again. */
	if (had)
		signal_all(agent, SIGCONT);
	int number = command->process.code - 128;
	bool hung_up = agent->terminal_lent && terminal_is_gone(&agent->terminal);
	if (!(had && (number == SIGINT || number == SIGQUIT)) && !(hung_up && number == SIGHUP))
		return;
	/* Only the command got the signal of the terminal: pass it on to the agent's process group,
	 * in which a script may wait for the agent. */
	agent->passed_on = number;
	kill(0, number);
}
