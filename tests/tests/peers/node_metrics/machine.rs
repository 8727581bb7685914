//! The files of a machine with parts that the test machine may lack: disks known to udev, software
//! RAID, bonded devices, sensors; and a few broken files.

pub(super) const FILES: [(&str, &str); 77] = [
    (
        "proc/stat",
        "cpu  9 9\ncpu0 301854 612 111922 8979004 3552 2 3944 7 44 36\ncpu3 1 2 3 4\n\
      intr 8885917 17 0\nctxt 38014093\nbtime 1418183276\nprocesses 26442\nprocs_running 2\n\
      procs_blocked 1\nsoftirq 5057579 250191 1481983 1647 211099 186066 0 1783454 622196 12499 508444\n",
    ),
    (
        "proc/meminfo",
        "MemTotal: 16042172 kB\nActive(file): 1 kB\nUnaccepted: 4 kB\n\
      HugePages_Free: 3\nHugepagesize: 2048 kB\nZswapped: 7 kB\n",
    ),
    ("proc/loadavg", "0.21 0.37 0.39 1/719 19737\n"),
    (
        "proc/vmstat",
        "nr_free_pages 977769\npgpgin 7344136\npswpout 35045\npgmajfault 507162\noom_kill 0\n",
    ),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=14036781\n"),
    (
        "proc/pressure/io",
        "some avg10=0.10 avg60=0.00 avg300=0.00 total=159886802\n\
      full avg10=0.00 avg60=0.00 avg300=0.00 total=159229614\n",
    ),
    ("proc/pressure/irq", "full avg10=0.00 avg60=0.00 avg300=0.00 total=8494\n"),
    ("proc/sys/fs/file-nr", "1024\t0\t1631329\n"),
    ("proc/sys/net/netfilter/nf_conntrack_count", "123\n"),
    ("proc/sys/net/netfilter/nf_conntrack_max", "65536\n"),
    (
        "proc/net/stat/nf_conntrack",
        "entries searched found new invalid ignore delete delete_list \
      insert insert_failed drop early_drop icmp_error expect_new expect_create expect_delete \
      search_restart\n21 0 a 0 3 4bd8 0 0 1 2 5 6 0 0 0 0 7\n21 0 1 0 0 10 0 0 0 0 0 0 0 0 0 0 0\n",
    ),
    (
        "proc/net/netstat",
        "TcpExt: SyncookiesSent EmbryonicRsts ListenDrops TCPTimeouts\n\
      TcpExt: 0 9 3 115\nIpExt: InNoRoutes InOctets\nIpExt: 0 6286396970\n",
    ),
    (
        "proc/net/snmp",
        "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: MaxConn CurrEstab InErrs\n\
      Tcp: -1 1 5\nUdpLite: InErrors\nUdpLite: 0\n",
    ),
    ("proc/net/snmp6", "Ip6InOctets 460\nIcmp6InMsgs 8\nUdpLite6InErrors 3\n"),
    (
        "proc/net/sockstat",
        "sockets: used 229\nTCP: inuse 4 orphan 0 tw 4 alloc 17 mem 1\n\
      FRAG: inuse 0 memory 5\n",
    ),
    ("proc/net/sockstat6", "TCP6: inuse 17\nFRAG6: inuse 0 memory 0\n"),
    (
        "proc/diskstats",
        "   8 0 sda 25354637 34367663 1003346126 18492372 28444756 11134226 505697032 \
      63877960 0 9653880 82621804\n   8 1 sda1 1 1 1 1 1 1 1 1 1 1 1\n 252 0 dm-0 1 2 3 4 5 6 7 8 9 10 \
      11 12 13 14 15\n 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n 3 1 hdx 1 2 3 4\n",
    ),
    (
        "proc/mdstat",
        "Personalities : [raid0] [raid1] [raid6]\n\n\
      md6 : active raid1 sdb2[2](F) sdc[1](S) sda2[0]\n      195310144 blocks [2/1] [U_]\n      \
      [=>..]  recovery =  8.5% (16775552/195310144) finish=17.0min speed=259783K/sec\n\n\
      md7 : active raid6 sdb1[0] sde1[3] sdd1[2] sdc1[1](F)\n      7813735424 blocks super 1.2 \
      level 6, 512k chunk, algorithm 2 [4/3] [U_UU]\n      bitmap: 0/30 pages [0KB], 65536KB chunk\n\n\
      md9 : active raid1 sdc2[2] sde[4](F)\n      523968 blocks super 1.2 [4/4] [UUUU]\n      \
      resync=DELAYED\n\nmd12 : active raid0 sdc2[0] sdd2[1]\n      3886394368 blocks super 1.2 \
      512k chunks\n\nunused devices: <none>\n",
    ),
    ("sys/block/sda/queue/rotational", "1\n"),
    ("sys/block/md6/md/level", "raid1\n"),
    ("sys/block/md6/md/array_state", "clean\n"),
    ("sys/block/md6/md/metadata_version", "1.2\n"),
    ("sys/block/md6/md/raid_disks", "2\n"),
    ("sys/block/md6/md/uuid", "1\n"),
    ("sys/block/md6/md/degraded", "1\n"),
    ("sys/block/md6/md/sync_action", "recover\n"),
    ("sys/block/md6/md/sync_completed", "1 / 2\n"),
    (
        "udev/b8:0",
        "S:disk/x\nE:ID_ATA=1\nE:ID_ATA_WRITE_CACHE=1\nE:ID_ATA_ROTATION_RATE_RPM=7200\n\
      E:ID_MODEL=TOSHIBA\nE:ID_WWN=0x7c\nE:ID_PATH=pci-0\nE:ID_REVISION=01=02\nE:ID_SERIAL=no\n\
      E:ID_SERIAL_SHORT=no\nE:SCSI_IDENT_SERIAL=2160A\n",
    ),
    (
        "udev/b252:0",
        "E:DM_NAME=crypt\nE:DM_UUID=CRYPT-1\nE:ID_FS_TYPE=LVM2_member\n\
      E:ID_FS_USAGE=raid\nE:ID_FS_UUID=c3\nE:ID_FS_VERSION=LVM2 001\n",
    ),
    (
        "root/etc/os-release",
        "NAME=\"A \\\"B\\\"\"\nID=ab # c\nVERSION_ID=20.04.1\nVARIANT='x y'\n\
      SUPPORT_END=2026-12-31\n",
    ),
    ("sys/devices/system/cpu/isolated", "1,3-5\n"),
    ("sys/devices/system/cpu/cpu0/online", "1\n"),
    ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
    ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
    ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "5\n"),
    ("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "30\n"),
    ("sys/devices/system/cpu/cpu10/online", "0\n"),
    ("sys/devices/system/cpu/cpu3/online", "1\n"),
    ("sys/devices/system/cpu/cpu3/topology/physical_package_id", "1\n"),
    ("sys/devices/system/cpu/cpu3/topology/core_id", "2\n"),
    ("sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "9\n"),
    ("sys/class/thermal/thermal_zone0/type", "bcm2835\n"),
    ("sys/class/thermal/thermal_zone0/policy", "step_wise\n"),
    ("sys/class/thermal/thermal_zone0/temp", "-49925\n"),
    ("sys/class/thermal/thermal_zone12/type", "switched off\n"),
    ("sys/class/thermal/cooling_device0/type", "Processor\n"),
    ("sys/class/thermal/cooling_device0/max_state", "50\n"),
    ("sys/class/thermal/cooling_device0/cur_state", "-1\n"),
    ("sys/class/thermal/cooling_device1/type", "Fan\n"),
    ("sys/class/net/bonding_masters", "bond0 int\n"),
    ("sys/class/net/bond0/bonding/slaves", "\n"),
    ("sys/class/net/int/bonding/slaves", "eth5 eth1\n"),
    ("sys/class/net/int/lower_eth5/bonding_slave/mii_status", "down\n"),
    ("sys/class/net/int/slave_eth1/bonding_slave/mii_status", "up\n"),
    ("sys/devices/platform/coretemp.0/hwmon/hwmon0/name", "coretemp\n"),
    ("sys/devices/platform/coretemp.0/hwmon/hwmon0/temp1_input", "55000\n"),
    ("sys/devices/platform/coretemp.0/hwmon/hwmon0/temp1_label", "Core 0 \n"),
    ("sys/devices/platform/coretemp.0/hwmon/hwmon0/temp1_crit_alarm", "0\n"),
    ("sys/devices/platform/coretemp.0/hwmon/hwmon0/temp1_type", "4\n"),
    ("sys/devices/platform/coretemp.0/fan1_input", "1200\n"),
    ("sys/class/hwmon/hwmon1/name", "NCT 6779\n"),
    ("sys/class/hwmon/hwmon1/beep_enable", "1\n"),
    ("sys/class/hwmon/hwmon1/update_interval", "1000\n"),
    ("sys/class/hwmon/hwmon1/vrm", "100\n"),
    ("sys/class/hwmon/hwmon1/in0_input", "792\n"),
    ("sys/class/hwmon/hwmon1/in0_beep", "0\n"),
    ("sys/class/hwmon/hwmon1/energy1_input", "2500000\n"),
    ("sys/class/hwmon/hwmon1/power1_accuracy", "500000\n"),
    ("sys/class/hwmon/hwmon1/power1_average", "12000000\n"),
    ("sys/class/hwmon/hwmon1/power1_average_interval", "1000\n"),
    ("sys/class/hwmon/hwmon1/pwm1", "77\n"),
    ("sys/class/hwmon/hwmon1/pwm1_auto_point1_temp", "30000\n"),
    ("sys/class/hwmon/hwmon1/freq1_input", "214000000\n"),
    ("sys/class/hwmon/hwmon1/freq1_label", "sclk\n"),
    ("sys/class/hwmon/hwmon1/humidity1_input", "250000\n"),
    ("sys/class/hwmon/hwmon1/temp9_input", "broken\n"),
    ("sys/class/hwmon/hwmon1/uevent", ""),
];
