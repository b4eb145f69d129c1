/*
 * The host's end of one VM: knows how to start QEMU, hand the job to vm-init.c in the guest, pass the command's output
 * on as it comes, keep the time limits, and stop QEMU for certain.
 *
 * vm-host --tsc-khz: prints this machine's time-stamp counter rate, which is the guest's too when QEMU emulates the CPU.
 * vm-host BOOT_SEC RUN_SEC JOB_FILE RESULT_FILE QEMU_LOG QEMU ARG...
 * QEMU finds the guest's port as file descriptor 3. The result file gets one word: exit, timeout, boot-timeout, died,
 * or "failed MESSAGE"; the exit code is the command's own for exit, 124 for timeout, else 125.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static pid_t qemu = -1;
static const char *result_file;

static void finish(const char *word, const char *detail, int code)
{
	FILE *f = fopen(result_file, "w");

	if (qemu > 0) {
		kill(qemu, SIGKILL);
		waitpid(qemu, NULL, 0);
	}
	if (f) {
		fprintf(f, "%s %s\n", word, detail);
		fclose(f);
	}
	exit(code);
}

static void on_signal(int sig)
{
	if (qemu > 0)
		kill(qemu, SIGKILL);
	_exit(128 + sig);
}

/* The deadline again, as a signal: a reader of our output that reads nothing must not keep the VM for ever. */
static void on_alarm(int sig)
{
	int fd = open(result_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	(void)sig;
	if (fd >= 0 && write(fd, "timeout \n", 9) != 9)
		close(fd);
	kill(qemu, SIGKILL);
	_exit(124);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { fd, POLLOUT, 0 };
			poll(&p, 1, 1000);
		} else if (n < 0 && errno != EINTR) {
			finish("closed", strerror(errno), 128 + SIGPIPE); /* our reader has gone */
		}
		if (n > 0) {
			buf += n;
			len -= n;
		}
	}
}

static void send_job(int fd, const char *path)
{
	struct stat st;
	int in = open(path, O_RDONLY);

	if (in < 0 || fstat(in, &st))
		finish("failed", "can't read the job file", 125);
	char *buf = malloc(st.st_size + 4);
	uint32_t len = st.st_size;
	memcpy(buf, &len, 4);
	if (read(in, buf + 4, len) != (ssize_t)len)
		finish("failed", "can't read the job file", 125);
	close(in);
	write_all(fd, buf, len + 4);
	free(buf);
}

static void start_qemu(int fd, const char *log, char **argv)
{
	qemu = fork();
	if (qemu)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no stray QEMU, however this process ends */
	if (getppid() == 1)
		_exit(1);
	signal(SIGPIPE, SIG_DFL);
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(open(log, O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
	dup2(1, 2);
	if (fd == 3)
		fcntl(3, F_SETFD, 0);
	else
		dup2(fd, 3);
	execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

/* Reads exactly len bytes, or ends everything at the deadline or at QEMU's end. */
static void get(int fd, char *buf, size_t len, const double *deadline, int ready)
{
	while (len) {
		struct pollfd p = { fd, POLLIN, 0 };
		double left = *deadline - now();

		if (left <= 0)
			finish(ready ? "timeout" : "boot-timeout", "", ready ? 124 : 125);
		if (poll(&p, 1, left > 1000 ? 1000000 : (int)(left * 1000) + 1) <= 0)
			continue;
		ssize_t n = read(fd, buf, len);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			finish("died", ready ? "running" : "booting", 125);
		if (n > 0) {
			buf += n;
			len -= n;
		}
	}
}

/* The counter and the clock read as near to each other as this machine lets us. */
static void tsc_and_time(uint64_t *tsc, double *t)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t a = __rdtsc();
		double n = now();
		uint64_t b = __rdtsc();
		if (b - a < best) {
			best = b - a;
			*tsc = a + (b - a) / 2;
			*t = n;
		}
	}
}

static int print_tsc_khz(void)
{
	uint64_t c0, c1;
	double t0, t1;

	tsc_and_time(&c0, &t0);
	usleep(200000);
	tsc_and_time(&c1, &t1);
	return printf("%.0f\n", (c1 - c0) / (t1 - t0) / 1000) < 0;
}

int main(int argc, char **argv)
{
	static char buf[1 << 16];
	int pair[2], ready = 0;
	uint32_t len;

	if (argc == 2 && !strcmp(argv[1], "--tsc-khz"))
		return print_tsc_khz();
	if (argc < 7)
		return 2;
	result_file = argv[4];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGHUP, on_signal);
	signal(SIGALRM, on_alarm);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		finish("failed", "socketpair", 125);
	double deadline = now() + atof(argv[1]);
	start_qemu(pair[1], argv[5], argv + 6);
	close(pair[1]);
	send_job(pair[0], argv[3]);
	for (;;) {
		get(pair[0], buf, 5, &deadline, ready);
		char type = buf[0];
		memcpy(&len, buf + 1, 4);
		if (len >= sizeof(buf))
			finish("died", "sending nonsense", 125);
		get(pair[0], buf, len, &deadline, ready);
		buf[len] = 0;
		if (type == 'R') {
			ready = 1;
			deadline = now() + atof(argv[2]);
			alarm(atoi(argv[2]) + 5);
		} else if (type == 'O') {
			write_all(1, buf, len);
		} else if (type == 'E') {
			write_all(2, buf, len);
		} else if (type == 'F') {
			finish("failed", buf, 125);
		} else if (type == 'X') {
			memcpy(&len, buf, 4);
			finish("exit", "", (int)len);
		}
	}
}
