/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter_account.c - the resources used so far, and at the end
 *
 * The cgroup counts best, then the meter, then the usage that the kernel reports to the waiting parent. The
 * cost of making the jar does not count as the command's.
 */
#include "engine/limits/limiter_parts.h"

#include <fcntl.h>
#include <string.h>

#include "base/sys/calls.h"

/* 6.18 has 4 KiB of it. */
#define VMSTAT_BYTES 16384

static uint64_t to_microseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

void limiter_leave_out(struct limiter *limiter, const struct rusage *making)
{
	limiter->launch_user_us = to_microseconds(making->ru_utime);
	limiter->launch_system_us = to_microseconds(making->ru_stime);
}

uint64_t limiter_command_ns(const struct limiter *limiter, uint64_t cpu_ns)
{
	return cpu_ns - MIN_OF(cpu_ns, (limiter->launch_user_us + limiter->launch_system_us) * 1000);
}

/* --- during the run ----------------------------------------------------------------------------------------- */

uint64_t limiter_share(const struct limiter *limiter, enum limit_name name)
{
	const struct meter_reading *reading = &limiter->reading;

	return name == LIMIT_DISK   ? reading->written_bytes + reading->stored_bytes
	       : name == LIMIT_PIDS ? reading->processes
				    : reading->resident_bytes + reading->private_bytes;
}

void limiter_usage(const struct limiter *limiter, struct limiter_usage *out)
{
	const uint64_t none = UINT64_MAX;
	struct cgroup_reading reading = {0};
	bool is_looked_at = limiter->metered != 0;

	*out = (struct limiter_usage){none, none, none, none, none};
	if (limiter->cgroup.version)
		limits_cgroup_read(&limiter->cgroup, &reading);
	if (!limits_cgroup_memory_now(&limiter->cgroup, &out->memory_bytes) &&
	    limiter_is_metered(limiter, GUARANTEE_MEMORY))
		out->memory_bytes = limiter_share(limiter, LIMIT_MEMORY);
	if (!limits_cgroup_processes_now(&limiter->cgroup, &out->processes) && is_looked_at)
		out->processes = limiter_share(limiter, LIMIT_PIDS);
	if (reading.has_peak_memory)
		out->peak_memory_bytes = reading.peak_memory_bytes;
	else if (limiter_is_metered(limiter, GUARANTEE_MEMORY))
		out->peak_memory_bytes = limiter->peak_memory_bytes;
	if (reading.has_peak_pids)
		out->peak_processes = reading.peak_pids;
	else if (is_looked_at)
		out->peak_processes = limiter->peak_processes;
	if (reading.has_cpu)
		out->cpu_us = reading.cpu_ns / 1000;
}

/* --- at the end --------------------------------------------------------------------------------------------- */

uint64_t limiter_count_host_kills(void)
{
	char content[VMSTAT_BYTES];
	const char *line;

	if (sys_read_file(AT_FDCWD, "/proc/vmstat", content, sizeof(content)) <= 0)
		return 0;
	line = strstr(content, "\noom_kill ");
	return line ? strtoull(strchr(line, ' '), NULL, 10) : 0;
}

/* Find whether memory ran out outside the run, which may have ended the command. This is only a remark. */
static enum host_shortage find_shortage(const struct limiter *limiter, const struct cgroup_reading *reading)
{
	if (reading->killed_for_memory)
		return limiter_is_over_memory(limiter, reading) ? SHORTAGE_NONE : SHORTAGE_PROVEN;
	return limiter_is_metered(limiter, GUARANTEE_MEMORY) && limiter_count_host_kills() > limiter->host_kills
		       ? SHORTAGE_SEEN
		       : SHORTAGE_NONE;
}

/* The last numbers may show a limit that was passed between the last look and the end; that ended nothing any more. */
static void check_cpu(struct limiter *limiter, const struct cgroup_reading *reading, const struct rusage *usage)
{
	uint64_t waited_ns = (to_microseconds(usage->ru_utime) + to_microseconds(usage->ru_stime)) * 1000;
	uint64_t used_ns = limiter_command_ns(limiter, reading->has_cpu ? reading->cpu_ns : waited_ns);
	bool is_cgroup = limiter_has_cgroup_cpu(limiter);

	if ((is_cgroup || limiter_is_metered(limiter, GUARANTEE_CPU_TIME)) &&
	    used_ns > limiter->plan->limits.cpu_time_ns)
		limiter_tell_cpu(limiter, used_ns, is_cgroup ? limits_cgroup_word(&limiter->cgroup) : "meter",
				 is_cgroup ? limiter_cgroup_cpu_source(limiter) : "rusage", CAUSE_NONE);
}

/* Note the use of reaped processes. */
static void note_waited(const struct limiter *limiter, const struct rusage *usage, struct observation *seen)
{
	uint64_t user_us = to_microseconds(usage->ru_utime), system_us = to_microseconds(usage->ru_stime);

	seen->user_us = user_us - MIN_OF(user_us, limiter->launch_user_us);
	seen->system_us = system_us - MIN_OF(system_us, limiter->launch_system_us);
}

/*
 * @seen already has the reaped processes. The cgroup and the task clock also count children that no parent
 * waited for. The task clock has only the sum, so split it in the same ratio as the known part.
 */
static void note_cpu(const struct limiter *limiter, const struct cgroup_reading *reading, struct observation *seen)
{
	uint64_t known_us = seen->user_us + seen->system_us;
	uint64_t clock_ns = 0, all_us;

	if (reading->user_ns || reading->system_ns) {
		uint64_t user_us = reading->user_ns / 1000, system_us = reading->system_ns / 1000;

		seen->user_us = MAX_OF(seen->user_us, user_us - MIN_OF(user_us, limiter->launch_user_us));
		seen->system_us = MAX_OF(seen->system_us, system_us - MIN_OF(system_us, limiter->launch_system_us));
		return;
	}
	if (limiter->meter.clock_fd < 0 ||
	    read(limiter->meter.clock_fd, &clock_ns, sizeof(clock_ns)) != sizeof(clock_ns))
		return;
	all_us = (clock_ns - MIN_OF(clock_ns, limiter->clock_ns)) / 1000;
	if (all_us <= known_us)
		return;
	seen->user_us = known_us ? (uint64_t)((double)all_us * (double)seen->user_us / (double)known_us) : all_us;
	seen->system_us = all_us - seen->user_us;
}

static void note_memory(const struct limiter *limiter, const struct cgroup_reading *reading, const struct rusage *usage,
			struct observation *seen)
{
	seen->memory_by = "maxrss";
	seen->peak_memory_bytes = (uint64_t)usage->ru_maxrss * 1024;
	if (reading->has_peak_memory) {
		struct limit_hit *hit = &seen->limits[LIMIT_MEMORY];

		seen->memory_by = limits_cgroup_word(&limiter->cgroup);
		seen->peak_memory_bytes = reading->peak_memory_bytes;
		/* The use may have grown since the notice: the kernel refuses large pages before small ones. */
		if (hit->is_hit && hit->has_peak)
			hit->peak = MAX_OF(hit->peak, reading->peak_memory_bytes);
	} else if (limiter_is_metered(limiter, GUARANTEE_MEMORY)) {
		/* A run that was over before the first look has at least its largest process. */
		seen->memory_by = "meter";
		seen->peak_memory_bytes = MAX_OF(seen->peak_memory_bytes, limiter->peak_memory_bytes);
	}
}

static void note_processes(const struct limiter *limiter, const struct cgroup_reading *reading,
			   struct observation *seen)
{
	if (reading->has_peak_pids && limiter->jar)
		seen->peak_processes = reading->peak_pids;
	else if (reading->has_peak_pids)
		/* The jar's first process does not count. The helpers that made the jar may exceed the limit. */
		seen->peak_processes = MIN_OF(MAX_OF(reading->peak_pids, 2) - 1, limiter->plan->limits.pids);
	else if (limiter->peak_processes)
		seen->peak_processes = limiter->peak_processes;
}

/* Only the file systems show what children wrote that no parent waited for. */
static void check_growth(struct limiter *limiter, const struct meter_reading *places)
{
	uint64_t grown = limiter->reading.has_lost_writes ? helper_meter_grown_bytes(&limiter->meter) : 0;
	uint64_t used = grown + places->stored_bytes;

	if (used > limiter->plan->limits.disk_bytes)
		limiter_tell_growth(limiter, grown, used, CAUSE_NONE);
}

void limiter_report(struct limiter *limiter, const struct rusage *usage, struct observation *seen)
{
	struct cgroup_reading reading = {0};
	struct meter_reading places = {0};

	/* It may have filled up since the last look. */
	if (limiter_is_metered(limiter, GUARANTEE_DISK)) {
		helper_meter_look_at_places(&limiter->meter, &places);
		limiter_check_scratch(limiter, &places);
		check_growth(limiter, &places);
	}
	seen->metered = limiter->metered;
	limiter_read_cgroup(limiter, &reading);
	check_cpu(limiter, &reading, usage);
	note_waited(limiter, usage, seen);
	note_cpu(limiter, &reading, seen);
	seen->shortage = find_shortage(limiter, &reading);
	note_memory(limiter, &reading, usage, seen);
	note_processes(limiter, &reading, seen);
}
